"""Unmodified HWI, in this process, for the tests that compare a virtual device with what HWI expects of a real one.

HWI blocks, so that its calls belong in a thread beside the device's event loop.
"""

import ctypes

import libusb_package
import usb1

usb1.loadLibrary(ctypes.CDLL(str(libusb_package.get_library_path())))

from hwilib.common import Chain  # noqa: E402 - HWI finds libusb only once it is loaded
from hwilib.devices.trezor import TrezorClient  # noqa: E402
from hwilib.psbt import PSBT  # noqa: E402

from firmware_bridge.model import Endpoint  # noqa: E402
from multisig import Psbt  # noqa: E402


def trezor(endpoint: Endpoint, chain: Chain = Chain.TEST, password: str | None = None) -> TrezorClient:
    """HWI's client of an emulator at an address of our own."""
    return TrezorClient(endpoint.address, password=password, chain=chain, sim_path=endpoint.place)


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
