"""Tokens at the platform: the index of what the chain says, and what members ask for."""
