"""A virtual Coldcard Mk4 that speaks the vendor's protocol over a Unix datagram socket."""

from firmware_bridge.virtual.coldcard.device import VirtualColdcard
from firmware_bridge.virtual.coldcard.releases import DEFAULT as COLDCARD_RELEASE
from firmware_bridge.virtual.coldcard.releases import RELEASES
from firmware_bridge.virtual.coldcard.wallet_store import InvalidWalletFile, XpubPolicy

__all__ = ["COLDCARD_RELEASE", "RELEASES", "InvalidWalletFile", "VirtualColdcard", "XpubPolicy"]
