"""Accounts: proving who a user is, with a password and a second factor, and the sessions that follow."""
