"""Which requests are answered: whose connection it is, what its headers may say, and which caller it has (ADR
19).

``listening`` opens the private socket and the ports, ``peers`` asks the kernel whose connection it is,
``gates`` reads Host, Origin, token and cookie, and ``guard`` bounds the body.
"""
