"""A vault's payments: read, proposed, signed, ended."""
