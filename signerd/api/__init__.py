"""The calls of the loopback, each described once: routes, OpenAPI and both clients are derived from it."""
