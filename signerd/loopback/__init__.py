"""The daemon's interface for programs of the same person: HTTP over a Unix socket that only its owner can
reach.
"""
