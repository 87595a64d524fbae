"""What the platform and the Bitcoin network tell each other."""
