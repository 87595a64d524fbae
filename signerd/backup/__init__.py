"""What this machine remembers, in one encrypted file, and a state folder made from it again (ADR 26)."""
