"""Background work, done at least once."""
