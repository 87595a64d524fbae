"""Telling other programs what happened in a workspace: the events, whom they go to, and their delivery."""
