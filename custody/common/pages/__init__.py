"""Shared by the signer's page and the platform's console: style, htmx, amounts and addresses as HTML, the
drawing of a transaction.
"""
