"""Accounts: authentication with a password and a second factor, and sessions."""
