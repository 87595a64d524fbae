"""Trezor through HWI: nothing is approved but by the person, and two of HWI's mistakes are mended on the way to the device."""

import copy
import threading
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import hid
from hwilib.devices.trezor import TrezorClient
from hwilib.devices.trezorlib import btc, messages, protobuf
from hwilib.devices.trezorlib.client import PASSPHRASE_ON_DEVICE
from hwilib.devices.trezorlib.client import TrezorClient as Wire
from hwilib.devices.trezorlib.exceptions import Cancelled
from hwilib.devices.trezorlib.transport import DEV_TREZOR1, TransportException
from hwilib.devices.trezorlib.transport.hid import HidTransport
from hwilib.devices.trezorlib.transport.udp import UdpTransport
from hwilib.devices.trezorlib.transport.webusb import WebUsbTransport
from hwilib.hwwclient import HardwareWalletClient
from hwilib.key import ExtendedKey, parse_path

from firmware_bridge.errors import Locked, NeedsPassphrase, Unsupported
from firmware_bridge.families import TREZOR_BUTTON, TREZOR_BUTTONS
from firmware_bridge.hwi_client.base import Args, OpenDevice, Operation, chain_of, parse_psbt, probed
from firmware_bridge.model import Endpoint, Family
from firmware_bridge.port import Caller, Opening
from multisig import Network

# MultisigPubkeysOrder.LEXICOGRAPHIC of messages-bitcoin.proto. HWI's copy of the protocol is older: without the field,
# firmware from T1 1.13.0 and core 2.8.7 takes the keys' order for part of the wallet and shows change as a payment.
_PUBKEYS_ORDER_FIELD: Final = 6
_LEXICOGRAPHIC: Final = 1


class _SortedMultisig(messages.MultisigRedeemScriptType):  # type: ignore[misc]  # untyped library
    """HWI's message with the field it lacks; HWI's own class stays as it is for whoever else uses it."""

    FIELDS: ClassVar = {
        **messages.MultisigRedeemScriptType.FIELDS,
        _PUBKEYS_ORDER_FIELD: protobuf.Field("pubkeys_order", "uint32"),
    }
    pubkeys_order = _LEXICOGRAPHIC


# A push of up to 75 bytes has a one-byte header; HWI cuts two bytes off every OP_RETURN script, whatever its push.
_MAX_SHORT_PUSH: Final = 75
_MODELS: Final[Mapping[str | None, str]] = {
    None: "Trezor One",
    "1": "Trezor One",
    "T": "Trezor Model T",
}
_HARDENED_ZERO: Final = [0x80000000]
# Messages that may still be on their way when a cut-off conversation is cleared.
_MAX_STALE_MESSAGES: Final = 16


class PinNeeded(Cancelled):  # type: ignore[misc]  # HWI is untyped
    """The device asks for a PIN in the middle of an operation; trezorlib cancels that on the device."""


class PassphraseNeeded(Cancelled):  # type: ignore[misc]  # HWI is untyped
    """The device asks for a passphrase that can be typed on the host only, and nobody gave one."""


class _Screen:
    """trezorlib's user interface, for a library: it tells, and decides nothing."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def button_request(self, request: Any) -> None:
        self._caller.tell(*TREZOR_BUTTONS.get(request.code, TREZOR_BUTTON))

    def get_pin(self, _code: object = None) -> str:
        raise PinNeeded

    def get_passphrase(self, available_on_device: bool) -> object:
        if available_on_device:
            return PASSPHRASE_ON_DEVICE
        raise PassphraseNeeded


class _Connection(Wire):  # type: ignore[misc]  # HWI is untyped
    """trezorlib's client, with a cancel that is sent when the device listens for one, and with HWI's messages mended."""

    def __init__(self, transport: Any, screen: _Screen) -> None:
        super().__init__(transport, ui=screen, _init_device=False)
        self._gate = threading.Lock()
        self._button_pending = False
        self._give_up = False

    def start_over(self) -> None:
        """Forget a cancel that came too late for the operation before."""
        with self._gate:
            self._give_up = False

    def request_cancel(self) -> None:
        """From another thread. Only a pending button hears Cancel: before that, it is remembered for the next one.

        It is said once: the answer to a second one would stay behind, for the next conversation to stumble over.
        """
        with self._gate:
            if self._button_pending and not self._give_up:
                self.cancel()
            self._give_up = True

    def _callback_button(self, msg: Any) -> Any:
        self._raw_write(messages.ButtonAck())
        self.ui.button_request(msg)
        with self._gate:
            self._button_pending = True
            if self._give_up:
                self.cancel()
        try:
            return self._raw_read()
        finally:
            with self._gate:
                self._button_pending = False

    def call(self, msg: Any, check_fw: bool = True) -> Any:
        if isinstance(msg, messages.TxAck):
            msg.tx.inputs = [_mend_multisig(item) for item in msg.tx.inputs]
            msg.tx.outputs = [_mend_op_return(_mend_multisig(item)) for item in msg.tx.outputs]
        return super().call(msg, check_fw)

    def clear(self) -> None:
        """End what an earlier, killed worker left open: Cancel, then a fresh start, whatever was still to be said."""
        self.open()
        try:
            self._raw_write(messages.Cancel())
            self._raw_write(messages.Initialize())
            for _ in range(_MAX_STALE_MESSAGES):
                if isinstance(self._raw_read(), messages.Features):
                    return
            raise TransportException("the device does not return to rest")
        finally:
            self.close()


class _Udp(UdpTransport):  # type: ignore[misc]  # HWI is untyped
    """HWI's emulator transport waits for ever. This one notices, within a second, that nobody is there any more."""

    def open(self) -> None:
        super().open()
        self.socket.settimeout(1.0)

    def read_chunk(self) -> bytearray:
        while True:
            try:
                chunk = self.socket.recv(64)
            except TimeoutError:
                # From the socket of this very conversation, so that the device goes on answering here.
                # A closed port turns it into ConnectionRefusedError.
                self.socket.sendall(b"PINGPING")
                continue
            if chunk == b"PONGPONG":
                continue
            if len(chunk) != 64:
                raise TransportException(f"Unexpected chunk size: {len(chunk)}")
            return bytearray(chunk)


class _Hwi(TrezorClient):  # type: ignore[misc]  # HWI is untyped
    """HWI's client on a transport of our choice; its own constructor scans, and presses YES on emulators."""

    def __init__(self, connection: _Connection, network: Network) -> None:
        HardwareWalletClient.__init__(self, "", "", expert=False, chain=chain_of(network))
        self.client = connection
        self.simulator = False
        self.type = "Trezor"


class TrezorDevice(OpenDevice):
    family = Family.TREZOR

    def __init__(self, connection: _Connection, network: Network) -> None:
        self._connection = connection
        self._hwi = _Hwi(connection, network)

    def operations(self) -> Mapping[str, Operation]:
        return {
            "probe": self._probe,
            "fingerprint": self._fingerprint,
            "xpubs": self._xpubs,
            "sign": self._sign,
            "sign_message": self._sign_message,
        }

    def call(self, op: str, args: Args) -> Any:
        """One session for the whole operation: between its calls nobody else can come in."""
        self._connection.start_over()
        return super().call(op, args)

    def cancel(self) -> None:
        self._connection.request_cancel()

    def close(self) -> None:
        while self._connection.session_counter:
            self._connection.close()

    def _probe(self, _args: Args) -> Any:
        features = self._connection.refresh_features()
        model = _MODELS.get(features.model, f"Trezor {features.model}")
        if features.bootloader_mode or not features.initialized:
            return probed(model, label=features.label, obstacle=Unsupported.code)
        if features.pin_protection and features.unlocked is False:
            return probed(model, label=features.label, obstacle=Locked.code)
        if features.passphrase_protection:
            return probed(model, label=features.label, obstacle=NeedsPassphrase.code)
        self._connection.init_device()
        return probed(model, label=features.label, fingerprint=self._read_fingerprint())

    def _fingerprint(self, _args: Args) -> Any:
        self._hwi._check_unlocked()  # noqa: SLF001 - HWI's one way to prepare a device for several requests
        return self._read_fingerprint()

    def _xpubs(self, args: Args) -> Any:
        fingerprint = self._fingerprint(args)
        return {"fingerprint": fingerprint, "xpubs": [self._read_xpub(path) for path in args["paths"]]}

    def _sign(self, args: Args) -> Any:
        tx = parse_psbt(args["psbt"])
        return self._hwi.sign_tx(tx).serialize()

    def _sign_message(self, args: Args) -> Any:
        return self._hwi.sign_message(args["text"], args["path"])

    def _read_fingerprint(self) -> str:
        node = btc.get_public_node(self._connection, _HARDENED_ZERO, coin_name="Bitcoin")
        return str(ExtendedKey.deserialize(node.xpub).parent_fingerprint.hex())

    def _read_xpub(self, path: str) -> str:
        node = btc.get_public_node(self._connection, parse_path(path), coin_name=self._hwi.coin_name)
        return str(node.xpub)


def open_trezor(endpoint: Endpoint, network: Network, caller: Caller, opening: Opening) -> TrezorDevice:
    connection = _Connection(_transport(endpoint), _Screen(caller))
    if opening.recover:
        connection.clear()
    # Held until the device is closed: one claim of the interface, one socket, for all that follows.
    connection.open()
    return TrezorDevice(connection, network)


def _transport(endpoint: Endpoint) -> Any:
    if endpoint.kind == "udp":
        return _Udp(endpoint.place)
    if endpoint.kind == "webusb":
        found = [dev for dev in WebUsbTransport.enumerate() if dev.get_path() == endpoint.address]
    else:
        devices = hid.enumerate(*DEV_TREZOR1)
        found = [HidTransport(dev) for dev in devices if dev["path"] == endpoint.place.encode()]
    if not found:
        raise TransportException(f"nothing at {endpoint.address}")
    return found[0]


def _mend_multisig(item: Any) -> Any:
    if item.multisig is None:
        return item
    # A copy: HWI sends the same object again whenever the device asks again.
    mended = copy.copy(item)
    mended.multisig = copy.copy(item.multisig)
    mended.multisig.__class__ = _SortedMultisig
    return mended


def _mend_op_return(output: Any) -> Any:
    """HWI's data of a longer push begins with the length byte; the device would sign another transaction."""
    data = output.op_return_data
    if data is None or len(data) <= _MAX_SHORT_PUSH:
        return output
    if data[0] != len(data) - 1:
        raise ValueError("an OP_RETURN output holds more than one push")
    mended = copy.copy(output)
    mended.op_return_data = data[1:]
    return mended
