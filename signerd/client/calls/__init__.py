"""Every call of the loopback, one file for each of ``loopback.api``."""
