"""A virtual Ledger in the Bitcoin app, on TCP: its APDUs, its distrust of the host, its screen."""

from firmware_bridge.virtual.ledger.device import VirtualLedger

__all__ = ["VirtualLedger"]
