"""What decides: pure values and functions. No socket, no clock, no database, no randomness."""
