"""Trezor through HWI."""
