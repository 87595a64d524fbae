"""Unmodified HWI, in this process, for the tests that compare a virtual device with
what HWI expects of a real one.

HWI blocks, so that its calls belong in a thread beside the device's event loop.
"""

from hwilib.devices.trezor import TrezorClient
from hwilib.psbt import PSBT

# Loads it: HWI's client of a Trezor wants libusb at any address.
from firmware_bridge.hwi_client import libusb  # noqa: F401
from multisig import Psbt


def sign(client: TrezorClient, psbt: Psbt) -> Psbt:
    """What HWI gives back, read by us."""
    theirs = PSBT()
    theirs.deserialize(psbt.to_base64())
    return Psbt.parse(client.sign_tx(theirs).serialize())


def close(client: TrezorClient) -> None:
    """Close the sockets however often HWI has opened them."""
    client.close()
    while client.client.session_counter:
        client.close()
