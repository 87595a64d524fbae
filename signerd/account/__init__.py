"""The signer's account at the platform: configuration, session, secrets, keys, vaults, polling."""
