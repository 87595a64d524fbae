"""How a Trezor is reached: an emulator's UDP port, WebUSB, or HID on old firmware of the Trezor One."""

from typing import Any

import hid
from hwilib.devices.trezorlib.transport import DEV_TREZOR1, TransportException
from hwilib.devices.trezorlib.transport.hid import HidTransport
from hwilib.devices.trezorlib.transport.udp import UdpTransport
from hwilib.devices.trezorlib.transport.webusb import WebUsbTransport

from firmware_bridge.model import Endpoint

CHUNK = 64


class UdpPort(UdpTransport):  # type: ignore[misc]  # HWI is untyped
    """HWI's emulator transport waits for ever. This one notices, within a second, that nobody is there any more."""

    def open(self) -> None:
        super().open()
        self.socket.settimeout(1.0)

    def write_chunk(self, chunk: bytes) -> None:
        self.socket.sendall(chunk)

    def read_chunk(self) -> bytearray:
        while True:
            try:
                chunk = self.socket.recv(CHUNK)
            except TimeoutError:
                # From the socket of this very conversation, so that the device goes on answering here.
                # A closed port turns it into ConnectionRefusedError.
                self.socket.sendall(b"PINGPING")
                continue
            if chunk == b"PONGPONG":
                continue
            if len(chunk) != CHUNK:
                raise TransportException(f"Unexpected chunk size: {len(chunk)}")
            return bytearray(chunk)


def transport_at(endpoint: Endpoint) -> Any:
    """:raises TransportException: nothing is there."""
    if endpoint.kind == "udp":
        return UdpPort(endpoint.place)
    if endpoint.kind == "webusb":
        found = [dev for dev in WebUsbTransport.enumerate() if dev.get_path() == endpoint.address]
    else:
        devices = hid.enumerate(*DEV_TREZOR1)
        found = [HidTransport(dev) for dev in devices if dev["path"] == endpoint.place.encode()]
    if not found:
        raise TransportException(f"nothing at {endpoint.address}")
    return found[0]
