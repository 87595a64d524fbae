"""Ledger through the client that HWI bundles."""

from firmware_bridge.hwi_client.ledger.device import open_device

__all__ = ["open_device"]
