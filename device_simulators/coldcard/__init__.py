"""A virtual Coldcard Mk4 that speaks the vendor's protocol over a Unix datagram socket."""

from device_simulators.coldcard.device import VirtualColdcard
from device_simulators.coldcard.releases import DEFAULT as COLDCARD_RELEASE
from device_simulators.coldcard.releases import RELEASES
from device_simulators.coldcard.wallet import InvalidWalletFile, XpubPolicy

__all__ = ["COLDCARD_RELEASE", "RELEASES", "InvalidWalletFile", "VirtualColdcard", "XpubPolicy"]
