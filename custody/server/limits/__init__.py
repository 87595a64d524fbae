"""Spending limits: the policies of roles and vaults, and their usage."""
