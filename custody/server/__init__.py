"""The platform's server; see docs/understand/architecture.md."""
