"""The daemon: its use cases and their answers."""
