"""The daemon's API for programs of the same user: HTTP over a Unix socket that only its owner can open."""
