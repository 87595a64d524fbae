"""A virtual Trezor, model 1, on UDP: its wire protocol, its screen, its refusals."""

from firmware_bridge.virtual.trezor.device import VirtualTrezor

__all__ = ["VirtualTrezor"]
