"""Digital Bitbox (BitBox01) through HWI. It has no screen: it shows no address and no payment.

It wipes itself after several wrong passwords. So a password is sent only in an operation that a person has
started, never in a probe, and never twice after a failure.
"""

import errno
import json
import socket
from collections.abc import Callable, Mapping
from typing import Any, Final

import hid
from hwilib.devices.digitalbitbox import (
    BitboxSimulator,
    DBBError,
    DigitalbitboxClient,
    send_encrypt,
    send_plain,
)
from hwilib.hwwclient import HardwareWalletClient

from firmware_bridge.errors import Locked, Unsupported
from firmware_bridge.hwi_client.base import (
    Args,
    OpenDevice,
    Operation,
    apostrophes,
    chain_of,
    parse_psbt,
    probed,
)
from firmware_bridge.model import Endpoint, Family
from firmware_bridge.presence.endpoints import host_and_port
from firmware_bridge.protocol import Caller, DeviceFailure, Opening, Question
from multisig import Network

_MODEL: Final = "Digital Bitbox"
_MAX_ANSWER: Final = 3584
# How soon it is noticed that an emulator has gone.
_LIVENESS_SECONDS: Final = 0.5
_NO_PASSWORD: Final = "It needs its password."  # noqa: S105 - a sentence, no secret
_BLIND: Final = "Touch the device to sign; it has no screen, so only this computer shows what is signed"


class DeviceSaid(Exception):
    """An error that the device returned: its number and its text."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class _Udp(BitboxSimulator):  # type: ignore[misc]  # HWI is untyped
    """The emulator's socket. HWI's times out after a second, too soon for a person."""

    bootloader = False
    firmware = None

    def __init__(self, place: str) -> None:
        super().__init__(*host_and_port(place))
        self.socket.settimeout(_LIVENESS_SECONDS)
        self.lost: Exception | None = None

    def send_recv(self, msg: bytes) -> bytes:
        try:
            self.socket.sendall(msg)
            return self._receive()
        except OSError as error:
            self.lost = error
            raise

    def _receive(self) -> bytes:
        while True:
            try:
                return bytes(self.socket.recv(_MAX_ANSWER))
            except TimeoutError:
                self._require_listener()

    def _require_listener(self) -> None:
        """Any datagram would be a request, so the emulator is not asked: it has gone if its port can be
        bound.
        """
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind((self.ip, self.port))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    return
                raise
        raise ConnectionRefusedError(errno.ECONNREFUSED, "no program is bound to the address any more")


class _Hid:
    """hidapi's device. It raises when the device has gone, where HWI reads on for ever."""

    def __init__(self, path: str) -> None:
        self._device = hid.device()
        self._device.open_path(path.encode())
        self.lost: Exception | None = None

    @property
    def bootloader(self) -> bool:
        return str(self.get_serial_number_string()).startswith("dbb.bl")

    @property
    def firmware(self) -> str:
        """The serial number is, for example, dbb.fw:v5.0.0."""
        return str(self.get_serial_number_string()).partition(":v")[2]

    def get_serial_number_string(self) -> Any:
        return self._watch(self._device.get_serial_number_string)

    def write(self, data: bytes) -> Any:
        return self._watch(self._device.write, data)

    def read(self, size: int) -> Any:
        return self._watch(self._read, size)

    def _read(self, size: int) -> Any:
        data = self._device.read(size)
        if not data:
            raise ConnectionResetError(errno.ECONNRESET, "the device has gone")
        return data

    def close(self) -> None:
        self._device.close()

    def _watch(self, call: Callable[..., Any], *args: Any) -> Any:
        try:
            return call(*args)
        except OSError as error:
            self.lost = error
            raise


class _Hwi(DigitalbitboxClient):  # type: ignore[misc]  # HWI is untyped
    """HWI's client on our connection, without the decorator that returns None for unknown errors."""

    def __init__(self, wire: _Udp | _Hid, network: Network, password: str | None) -> None:
        HardwareWalletClient.__init__(self, "", None, expert=False, chain=chain_of(network))
        self.device = wire
        self.password = password

    get_pubkey_at_path = DigitalbitboxClient.get_pubkey_at_path.__wrapped__
    sign_tx = DigitalbitboxClient.sign_tx.__wrapped__
    sign_message = DigitalbitboxClient.sign_message.__wrapped__


class DigitalBitboxDevice(OpenDevice):
    family = Family.DIGITALBITBOX

    def __init__(self, wire: _Udp | _Hid, network: Network, caller: Caller, password: str | None) -> None:
        self._wire = wire
        self._hwi = _Hwi(wire, network, password)
        self._caller = caller

    def operations(self) -> Mapping[str, Operation]:
        return {
            "probe": self._probe,
            "fingerprint": self._fingerprint,
            "xpubs": self._xpubs,
            "sign": self._sign,
            "sign_message": self._sign_message,
            "identify": self._identify,
            "unlock": self._unlock,
        }

    def close(self) -> None:
        self._wire.close()

    def _probe(self, _args: Args) -> Any:
        """In plain text: it tells without a password whether it has one."""
        if self._wire.bootloader:
            return _stuck("It is in its bootloader: connect it again without touching it.")
        if self._ask(send_plain, b'{"ping":""}', self._wire).get("ping") != "password":
            return _stuck("It has no password yet: set it up with its own app.")
        if self._hwi.password is None:
            return probed(_MODEL, obstacle=Locked.code, detail=_NO_PASSWORD, firmware=self._wire.firmware)
        return probed(_MODEL, firmware=self._wire.firmware)

    def _unlock(self, args: Args) -> Any:
        self._hwi.password = self._caller.ask(Question.PASSWORD)
        if self._command({"device": "info"})["device"].get("seeded") is False:
            raise DeviceFailure(Unsupported.code, "It has no wallet yet: set it up with its own app.")
        return {"fingerprint": self._fingerprint(args), "session": self._hwi.password}

    def _identify(self, _args: Args) -> Any:
        self._command({"led": "blink"})

    def _fingerprint(self, _args: Args) -> Any:
        return self._with_password(self._hwi.get_master_fingerprint).hex()

    def _xpubs(self, args: Args) -> Any:
        fingerprint = self._fingerprint(args)
        paths = map(apostrophes, args["paths"])
        keys = [self._with_password(self._hwi.get_pubkey_at_path, path) for path in paths]
        return {"fingerprint": fingerprint, "xpubs": [key.to_string() for key in keys]}

    def _sign(self, args: Args) -> Any:
        self._caller.tell("confirm-transaction", _BLIND)
        return self._with_password(self._hwi.sign_tx, parse_psbt(args["psbt"])).serialize()

    def _sign_message(self, args: Args) -> Any:
        self._caller.tell("confirm-message", _BLIND)
        # As bytes: for text HWI counts characters, but the signed length is that of the bytes.
        return self._with_password(self._hwi.sign_message, args["text"].encode(), apostrophes(args["path"]))

    def _command(self, command: Mapping[str, Any]) -> Any:
        text = json.dumps(command)
        return self._with_password(lambda: send_encrypt(text, self._hwi.password, self._wire))

    def _with_password(self, call: Callable[..., Any], *args: Any) -> Any:
        """:raises DeviceFailure: no password was given."""
        if not self._hwi.password:
            raise DeviceFailure(Locked.code, _NO_PASSWORD)
        return self._ask(call, *args)

    def _ask(self, call: Callable[..., Any], *args: Any) -> Any:
        """HWI turns exceptions of the connection into replies; here they are raised again.

        :raises DeviceSaid: the device answered with an error.
        """
        try:
            answer = call(*args)
        except DBBError as error:
            raise self._wire.lost or _said(error.error["error"]) from error
        if isinstance(answer, dict) and "error" in answer:
            raise self._wire.lost or _said(answer["error"])
        return answer


def open_digitalbitbox(
    endpoint: Endpoint, network: Network, caller: Caller, opening: Opening
) -> DigitalBitboxDevice:
    """`opening.session` is the password that `unlock` got."""
    wire = _Udp(endpoint.place) if endpoint.kind == "udp" else _Hid(endpoint.place)
    return DigitalBitboxDevice(wire, network, caller, opening.session)


def _said(error: Any) -> DeviceSaid:
    """The device sends an error's code as text or number; HWI's own errors are sentences."""
    if isinstance(error, dict):
        return DeviceSaid(int(error.get("code", 0)), str(error.get("message", "")))
    return DeviceSaid(0, str(error))


def _stuck(detail: str) -> dict[str, Any]:
    return probed(_MODEL, obstacle=Unsupported.code, detail=detail)
