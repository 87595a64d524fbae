"""Coldcard through the library that HWI bundles."""
