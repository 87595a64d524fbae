"""A virtual Ledger in the Bitcoin app, on TCP: its APDUs, its screen."""

from device_simulators.ledger.device import VirtualLedger

__all__ = ["VirtualLedger"]
