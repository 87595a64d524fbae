"""What surrounds every request: repeated requests, rate limits, and waiting for changes."""
