"""The decisions, as pure values and functions: no socket, clock, database or randomness."""
