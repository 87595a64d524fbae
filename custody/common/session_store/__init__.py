"""Storage for a program's session secret: the desktop's keyring, or an encrypted file."""
