"""Where a program of ours keeps the session's secret: the desktop's keyring, or an encrypted file."""
