"""Part of the house; see docs/understand/architecture.md."""
