"""Proposals: drafting, signing, finalising."""
