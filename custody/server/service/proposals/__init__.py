"""Proposals: drafted, signed, finalised, and moved along one table."""
