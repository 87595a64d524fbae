"""Accounts: proving who somebody is, with a password and a second factor, and the sessions that follow."""
