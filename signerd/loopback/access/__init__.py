"""Access control: the connection's user, the headers allowed, and the caller (ADR 19).

``listening`` opens the private socket and the ports, ``peers`` asks the kernel for a connection's user,
``gates`` checks Host, Origin, token and session, and ``guard`` bounds the body.
"""
