"""What happened to a vault: its movements as a list."""
