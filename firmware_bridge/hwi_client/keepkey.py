"""KeepKey through HWI: an old Trezor One's protocol with other USB numbers, and with one passphrase for all
programs.

It has no sessions. The passphrase stays in its memory, for any program, until it gets Initialize, which HWI
sends before every request. This driver sends it only in `unlock`.
"""

from typing import Any, Final

import hid
from hwilib.devices.keepkey import KEEPKEY_HID_IDS, KEEPKEY_WEBUSB_IDS, KeepkeyFeatures
from hwilib.devices.trezorlib import messages
from hwilib.devices.trezorlib.client import TrezorClient as Wire
from hwilib.devices.trezorlib.models import TrezorModel
from hwilib.devices.trezorlib.transport import TransportException
from hwilib.devices.trezorlib.transport.hid import HidTransport
from hwilib.devices.trezorlib.transport.webusb import WebUsbTransport

from firmware_bridge.hwi_client.trezor.device import TrezorDevice
from firmware_bridge.hwi_client.trezor.messages import Codec
from firmware_bridge.hwi_client.trezor.screen import PassphraseNeeded, PinNeeded, Screen
from firmware_bridge.hwi_client.trezor.wire import Connection, UdpPort, is_locked
from firmware_bridge.model import Endpoint, Family
from firmware_bridge.protocol import Caller, Opening
from multisig import Network


def _codec() -> Codec:
    """A separate table: HWI puts KeepKey's messages into the Trezors' one."""
    codec: Codec = Codec.from_module(messages)
    codec.register(KeepkeyFeatures)
    return codec


_CODEC: Final = _codec()
# HWI has a string of vendors, where any substring would match.
_MODEL: Final = TrezorModel(
    name="K1-14AM",
    internal_name="keepkey",
    minimum_version=(0, 0, 0),
    vendors=("keepkey.com",),
    usb_ids=(),
    default_mapping=_CODEC,
)


class KeepKeyConnection(Connection):
    """A Trezor's connection without sessions; the device tells whether it remembers a passphrase."""

    def __init__(self, transport: Any, screen: Screen) -> None:
        super().__init__(transport, screen)
        self.mapping = _CODEC
        self.model = _MODEL

    def wake(self) -> None:
        """Without Initialize, by which the device would forget its passphrase.

        :raises PinNeeded: the device is locked.
        :raises PassphraseNeeded: it wants a passphrase.
        """
        features = self.look()
        if is_locked(features):
            raise PinNeeded
        if features.passphrase_protection and not features.passphrase_cached:
            raise PassphraseNeeded

    def begin_unlocking(self) -> None:
        """Send Initialize: the device forgets the passphrase, but not the PIN."""
        self.look()
        self.init_device()

    def keep_session(self) -> str | None:
        return None

    def _refresh_features(self, features: Any) -> None:
        Wire._refresh_features(self, features)  # noqa: SLF001 - skips the Trezor's table of models


class KeepKeyDevice(TrezorDevice):
    family = Family.KEEPKEY

    def _model(self) -> str:
        return "KeepKey"


def open_keepkey(endpoint: Endpoint, network: Network, caller: Caller, opening: Opening) -> KeepKeyDevice:
    connection = KeepKeyConnection(_transport(endpoint), Screen(caller))
    if opening.recover:
        connection.clear()
    # Open until the device is closed: one claim of the interface, one socket.
    connection.open()
    return KeepKeyDevice(connection, network)


def _transport(endpoint: Endpoint) -> Any:
    """:raises TransportException: nothing is there."""
    if endpoint.kind == "udp":
        return UdpPort(endpoint.place)
    if endpoint.kind == "webusb":
        listed = WebUsbTransport.enumerate(usb_ids=KEEPKEY_WEBUSB_IDS)
        found = [device for device in listed if device.get_path() == endpoint.address]
    else:
        entries = [entry for numbers in KEEPKEY_HID_IDS for entry in hid.enumerate(*numbers)]
        found = [HidTransport(entry) for entry in entries if entry["path"] == endpoint.place.encode()]
    if not found:
        raise TransportException(f"no device at {endpoint.address}")
    return found[0]
