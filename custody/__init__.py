"""The platform, its SDK and its command line; see docs/understand/architecture.md."""
