"""How long a test waits for what must happen: a bound for a hanging test, not a measure of speed."""

PATIENCE = 90.0
