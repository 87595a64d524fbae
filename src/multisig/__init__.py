"""Pure Bitcoin multisig: no I/O, no clock, no randomness."""
