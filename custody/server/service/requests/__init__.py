"""What surrounds every request: repetition, rates, and word of changes."""
