"""Unmodified HWI in this process, for tests that compare a virtual device with what HWI expects.

HWI blocks: call it in a thread beside the device's event loop.
"""

from hwilib.devices.trezor import TrezorClient
from hwilib.psbt import PSBT

# Loads libusb, which HWI's Trezor client needs at any address.
from firmware_bridge.hwi_client import libusb  # noqa: F401
from multisig import Psbt


def sign(client: TrezorClient, psbt: Psbt) -> Psbt:
    """Signs with HWI and parses the result."""
    theirs = PSBT()
    theirs.deserialize(psbt.to_base64())
    return Psbt.parse(client.sign_tx(theirs).serialize())


def close(client: TrezorClient) -> None:
    """Closes the sockets, as often as HWI has opened them."""
    client.close()
    while client.client.session_counter:
        client.close()
