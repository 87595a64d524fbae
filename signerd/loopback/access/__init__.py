"""Who gets through the door: whose connection it is, what its headers may say, and whom the request speaks for (ADR 19).

``sockets`` and ``ports`` listen, ``peers`` asks the kernel who called, ``gates`` reads Host, Origin, token and cookie, and ``door`` bounds the body.
"""
