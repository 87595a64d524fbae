"""Encrypted backups of the state folder, and restoring them (ADR 26)."""
