"""A virtual Coldcard Mk4 that speaks the vendor's protocol over a Unix datagram socket."""

from firmware_bridge.virtual.coldcard.device import VirtualColdcard
from firmware_bridge.virtual.coldcard.wallet_store import InvalidWalletFile, XpubPolicy

__all__ = ["InvalidWalletFile", "VirtualColdcard", "XpubPolicy"]
