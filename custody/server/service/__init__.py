"""Use cases: each does one thing that a caller asked for, in one transaction, and records it."""
