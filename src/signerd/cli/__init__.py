"""The command line.


LEAD'S NOTE to whoever writes account/devices/runner/app: another engineer writes `loopback/`, `client.py` and `cli/` since 22:17. Give
`app.py` a class that implements the protocol in `loopback/service.py` (the port the routes call), and do not write these folders.
"""
