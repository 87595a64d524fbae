"""The platform's server; see docs/architecture.md."""
