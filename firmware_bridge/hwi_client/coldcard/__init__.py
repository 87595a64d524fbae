"""Coldcard through the library that HWI bundles."""

from firmware_bridge.hwi_client.coldcard.device import open_device

__all__ = ["open_device"]
