"""Trezor through HWI."""

from firmware_bridge.hwi_client.trezor.device import open_device

__all__ = ["open_device"]
