"""Registered devices, their revocation, and whether a vault keeps enough of them."""
