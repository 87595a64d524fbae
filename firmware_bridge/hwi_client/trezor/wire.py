"""The connection to a Trezor: UDP, WebUSB, or HID (old firmware of the Trezor One), and trezorlib's client
with a cancel, a kept session, and no question unless `unlock` asks for it.
"""

import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

import hid
from hwilib.devices.trezorlib import messages, models
from hwilib.devices.trezorlib.client import PASSPHRASE_ON_DEVICE
from hwilib.devices.trezorlib.client import TrezorClient as Wire
from hwilib.devices.trezorlib.exceptions import TrezorFailure
from hwilib.devices.trezorlib.transport import DEV_TREZOR1, TransportException
from hwilib.devices.trezorlib.transport.hid import HidTransport
from hwilib.devices.trezorlib.transport.udp import UdpTransport
from hwilib.devices.trezorlib.transport.webusb import WebUsbTransport

from firmware_bridge.errors import Locked, NeedsPassphrase, Uninitialised, Unsupported
from firmware_bridge.hwi_client.trezor.messages import mend
from firmware_bridge.hwi_client.trezor.screen import ASKS_PASSPHRASE, ASKS_PIN, HIDDEN_WALLET, TrezorUi
from firmware_bridge.model import Endpoint

# Messages that may still arrive when a cut-off operation is cleared.
_MAX_STALE_MESSAGES: Final = 16
# FailureType.InvalidProtocol of messages-common.proto, newer than HWI's copy.
_INVALID_PROTOCOL: Final = 17
_WRONG_PIN: Final = (messages.FailureType.PinInvalid, messages.FailureType.PinExpected)
T = TypeVar("T")


CHUNK = 64


class UdpPort(UdpTransport):  # type: ignore[misc]  # HWI is untyped
    """HWI's transport waits for ever. This one notices within a second that the emulator has gone."""

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
                # Sent from the connection's own socket, so that the device goes on answering there. A closed
                # port raises ConnectionRefusedError.
                self.socket.sendall(b"PINGPING")
                continue
            if chunk == b"PONGPONG":
                continue
            if len(chunk) != CHUNK:
                raise TransportException(f"Unexpected chunk size: {len(chunk)}")
            return bytearray(chunk)


def transport_at(endpoint: Endpoint) -> Any:
    """:raises TransportException: no device at this endpoint."""
    if endpoint.kind == "udp":
        return UdpPort(endpoint.place)
    if endpoint.kind == "webusb":
        found = [dev for dev in WebUsbTransport.enumerate() if dev.get_path() == endpoint.address]
    else:
        devices = hid.enumerate(*DEV_TREZOR1)
        found = [HidTransport(dev) for dev in devices if dev["path"] == endpoint.place.encode()]
    if not found:
        raise TransportException(f"no device at {endpoint.address}")
    return found[0]


class TrezorConnection(Wire):  # type: ignore[misc]  # HWI is untyped
    """`session`: the one in which the passphrase was given, or None."""

    def __init__(self, transport: Any, screen: TrezorUi, session: bytes | None = None) -> None:
        super().__init__(transport, ui=screen, session_id=session, _init_device=False)
        self.features: Any = None
        self.wallet = session
        """The session of the wallet that `unlock` opened."""
        self._gate = threading.Lock()
        self._button_pending = False
        self._give_up = False

    def look(self) -> Any:
        """The device's features. A locked device tells them too; later models answer nothing else before.

        :raises BridgeError: the device cannot be used, and why.
        """
        features = self.refresh_features()
        if features.bootloader_mode:
            raise Unsupported(
                detail="The device is in its bootloader: connect it again without pressing a button."
            )
        if not features.initialized:
            raise Uninitialised
        return features

    def wake(self) -> None:
        """Prepare for an operation in the right session, without asking the person.

        :raises Locked: the device asks for its PIN.
        :raises NeedsPassphrase: it needs a passphrase, or has forgotten the session.
        """
        features = self.look()
        if is_locked(features):
            raise Locked(detail=ASKS_PIN)
        if features.passphrase_protection:
            self._resume()
        else:
            self.init_device()

    def begin_unlocking(self) -> None:
        """Choose the session to unlock: a locked device may still remember a passphrase.

        If the device is unlocked, the caller wants another passphrase: a new session.
        """
        features = self.look()
        if is_locked(features):
            self.init_device(session_id=self.wallet)
        else:
            self.init_device(new_session=bool(features.passphrase_protection))

    def keep_session(self) -> str | None:
        """The session to open the device with from now on; None without a passphrase."""
        self.wallet = self.session_id if self.refresh_features().passphrase_protection else None
        return None if self.wallet is None else self.wallet.hex()

    def _resume(self) -> None:
        if self.wallet is None:
            raise NeedsPassphrase(detail=ASKS_PASSPHRASE)
        # The device replaces an unknown session by a new one, which would be another wallet.
        if self.init_device(session_id=self.wallet) != self.wallet:
            self.wallet = None
            raise NeedsPassphrase(detail="the device has forgotten the passphrase")

    def start_over(self) -> None:
        """Reset the progress, and a cancel that came too late for the operation before."""
        self.ui.start_over()
        with self._gate:
            self._give_up = False

    def request_cancel(self) -> None:
        """Called from another thread. The device takes Cancel during a button request only, so it is kept for
        the next one.

        It is sent once: the answer to a second one would be left for the next operation.
        """
        with self._gate:
            if self._button_pending and not self._give_up:
                self.cancel()
            self._give_up = True

    def call(self, msg: Any, check_fw: bool = True) -> Any:
        answer = super().call(mend(msg), check_fw)
        if isinstance(answer, messages.TxRequest):
            self.ui.follow(answer)
        return answer

    def refresh_features(self) -> Any:
        """As trezorlib's, but reports a failure that the device returns."""
        answer = self.call_raw(messages.GetFeatures())
        if isinstance(answer, messages.Failure):
            if answer.code == _INVALID_PROTOCOL:
                raise Unsupported(detail="HWI cannot speak the protocol of this Trezor (THP).")
            raise TrezorFailure(answer)
        if not isinstance(answer, messages.Features):
            raise TransportException("it did not answer with its features")
        self._refresh_features(answer)
        return answer

    def _refresh_features(self, features: Any) -> None:
        self.features = features
        if models.by_name(features.model or "1") is None:
            raise Unsupported(detail="HWI does not know this Trezor model.")
        super()._refresh_features(features)

    def _raw_write(self, msg: Any) -> None:
        # Not trezorlib's, which logs PIN and passphrase.
        self.transport.write(*self.mapping.encode(msg))

    def _callback_button(self, msg: Any) -> Any:
        self._or_cancel(lambda: self.ui.refuse_entry(msg.code))
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

    def _callback_pin(self, msg: Any) -> Any:
        places = self._or_cancel(lambda: self.ui.get_pin(msg.type))
        self.ui.tell_check()
        answer = self.call_raw(messages.PinMatrixAck(pin=places))
        if isinstance(answer, messages.Failure) and answer.code in _WRONG_PIN:
            raise Locked(detail="the PIN was wrong")
        return answer

    def _callback_passphrase(self, _msg: Any) -> Any:
        on_device = messages.Capability.PassphraseEntry in self.features.capabilities
        passphrase = self._or_cancel(lambda: self.ui.get_passphrase(on_device))
        if passphrase is PASSPHRASE_ON_DEVICE:
            return self.call_raw(messages.PassphraseAck(on_device=True))
        if passphrase:
            self.ui.words = HIDDEN_WALLET
        return self.call_raw(messages.PassphraseAck(passphrase=passphrase, on_device=False))

    def _or_cancel(self, answer: Callable[[], T]) -> T:
        """The answer; without one, send Cancel, so that the device does not wait for it."""
        try:
            return answer()
        except BaseException:
            self.call_raw(messages.Cancel())
            raise

    def clear(self) -> None:
        """End what a killed worker left open: send Cancel and Initialize, and drop all messages before the
        answer.
        """
        self.open()
        try:
            self._raw_write(messages.Cancel())
            self._raw_write(messages.Initialize(session_id=self.wallet))
            for _ in range(_MAX_STALE_MESSAGES):
                if isinstance(self._raw_read(), messages.Features):
                    return
            raise TransportException("the device does not become idle")
        finally:
            self.close()


def is_locked(features: Any) -> bool:
    return bool(features.pin_protection) and features.unlocked is False
