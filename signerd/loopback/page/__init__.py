"""The page for a person: HTML rendered by the daemon, on the same port as the API (ADR 20)."""
