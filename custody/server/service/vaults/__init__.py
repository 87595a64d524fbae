"""Vaults as they are made, shown, and derived from."""
