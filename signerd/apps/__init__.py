"""Pairing apps: requests, the person's answers, and bearer tokens (ADR 19)."""
