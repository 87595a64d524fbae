"""The platform's console: what proposers, approvers without a device and administrators use in a browser.

It calls the endpoints of the API's table, each with its own checks, as the person who is signed in (ADR 30).
"""
