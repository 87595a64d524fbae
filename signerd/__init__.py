"""The signer's daemon; docs/architecture.md says what lives where."""
