"""Webhooks: the events, their delivery, and the endpoints' use cases."""
