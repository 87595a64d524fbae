"""The signer's daemon; see docs/understand/architecture.md."""
