"""A virtual Coldcard Mk4 that speaks the vendor's protocol over a Unix datagram socket."""

from device_simulators.coldcard.device import VirtualColdcard
from device_simulators.coldcard.wallet import InvalidWalletFile

__all__ = ["InvalidWalletFile", "VirtualColdcard"]
