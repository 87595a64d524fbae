"""A virtual Trezor, model 1, on UDP: its wire protocol, its screen, its refusals."""

from device_simulators.trezor.device import VirtualTrezor

__all__ = ["VirtualTrezor"]
