"""The signer's daemon; docs/understand/architecture.md says what lives where."""
