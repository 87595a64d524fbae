"""Idempotency, rate limits and long polls."""
