"""The platform's rules, as values and functions: no clock, no randomness, no database, no network."""
