"""The daemon's interface for programs of the same person: HTTP over a Unix socket that only its owner can reach.

LEAD'S NOTE to whoever writes account/devices/runner/app: another engineer writes `loopback/`, `client.py` and `cli/` since 22:17. Give
`app.py` a class that implements the protocol in `loopback/service.py` (the port the routes call), and do not write these folders.
"""
