"""Signing in, and what a person does with their own password, second factor, passkeys and sessions."""
