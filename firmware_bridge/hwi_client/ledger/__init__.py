"""Ledger through the client that HWI bundles."""
