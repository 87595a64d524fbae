"""The connection to a Trezor: UDP, WebUSB, or HID (old firmware of the Trezor One), and a conversation with a
cancel, a kept session, and no question unless `unlock` asks for it.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Self

from firmware_bridge.errors import Locked, NeedsPassphrase, Uninitialised, Unsupported
from firmware_bridge.hwi_client.trezor.library import (
    DEFAULT_MAPPING,
    HidTransport,
    MessageType,
    TransportException,
    TrezorFailure,
    UdpTransport,
    WebUsbTransport,
    messages,
    models,
    read,
    write,
)
from firmware_bridge.hwi_client.trezor.screen import ASKS_PASSPHRASE, ASKS_PIN, HIDDEN_WALLET, TrezorUi
from firmware_bridge.model import Endpoint

# Messages that may still arrive when a cut-off operation is cleared.
_MAX_STALE_MESSAGES: Final = 16
_WRONG_PIN: Final = (messages.FailureType.PinInvalid, messages.FailureType.PinExpected)
_CHUNK: Final = 64


class UdpPort(UdpTransport):  # type: ignore[misc]  # the library counts as untyped
    """The library's transport waits for ever. This one notices that the emulator has gone."""

    def read_chunk(self, *, timeout: float | None = None) -> bytes:  # noqa: ARG002 - the bridge keeps the deadline
        while True:
            try:
                chunk = bytes(self.socket.recv(_CHUNK))
            except TimeoutError:
                # Sent from the connection's own socket, so that the device goes on answering there. A closed
                # port raises ConnectionRefusedError.
                self.socket.sendall(b"PINGPING")
                continue
            if chunk == b"PONGPONG":
                continue
            if len(chunk) != _CHUNK:
                raise TransportException(f"Unexpected chunk size: {len(chunk)}")
            return chunk


def transport_at(endpoint: Endpoint) -> Any:
    """:raises TransportException: no device at this endpoint."""
    if endpoint.kind == "udp":
        return UdpPort(endpoint.place)
    kind = WebUsbTransport if endpoint.kind == "webusb" else HidTransport
    return kind.find_by_path(endpoint.address)


class TrezorConnection:
    """What the library's functions take for a session. `session`: the one in which the passphrase was given,
    or None.
    """

    def __init__(self, transport: Any, screen: TrezorUi, session: bytes | None = None) -> None:
        self.transport = transport
        self.ui = screen
        self.features: Any = None
        self.wallet = session
        """The session of the wallet that `unlock` opened."""
        self._session = session
        self._gate = threading.Lock()
        self._button_pending = False
        self._give_up = False

    def __enter__(self) -> Self:
        """The library opens a session for each of its functions; this one is open until it is closed."""
        return self

    def __exit__(self, *_error: object) -> None: ...

    def look(self) -> Any:
        """The device's features. A locked device tells them too; later models answer nothing else before.

        :raises BridgeError: the device cannot be used, and why.
        """
        features = self._features_after(messages.GetFeatures())
        model = models.detect(features)
        version = (features.major_version, features.minor_version, features.patch_version)
        if model.is_unknown or features.vendor not in model.vendors:
            raise Unsupported(detail="This program does not know this Trezor model.")
        if features.bootloader_mode:
            raise Unsupported(
                detail="The device is in its bootloader: connect it again without pressing a button."
            )
        if version < model.minimum_version:
            raise Unsupported(detail="Its firmware is out of date.")
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
            self.initialize(self._session)

    def begin_unlocking(self) -> None:
        """Choose the session to unlock: a locked device may still remember a passphrase.

        If the device is unlocked, the caller wants another passphrase: a new session.
        """
        features = self.look()
        if is_locked(features):
            self.initialize(self.wallet or self._session)
        else:
            self.initialize(None if features.passphrase_protection else self._session)

    def keep_session(self) -> str | None:
        """The session to open the device with from now on; None without a passphrase."""
        self.wallet = self._session if self.look().passphrase_protection else None
        return None if self.wallet is None else self.wallet.hex()

    def _resume(self) -> None:
        if self.wallet is None:
            raise NeedsPassphrase(detail=ASKS_PASSPHRASE)
        # The device replaces an unknown session by a new one, which would be another wallet.
        if self.initialize(self.wallet) != self.wallet:
            self.wallet = None
            raise NeedsPassphrase(detail="the device has forgotten the passphrase")

    def initialize(self, session: bytes | None) -> bytes | None:
        """The session that the device goes on with: this one, or a new one."""
        reported: bytes | None = self._features_after(messages.Initialize(session_id=session)).session_id
        return reported

    def _features_after(self, question: MessageType) -> Any:
        self.features = self.call(question, expect=messages.Features)
        self._session = self.features.session_id or self._session
        return self.features

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
                self._write(messages.Cancel())
            self._give_up = True

    def call(self, msg: MessageType, *, expect: type[MessageType] = MessageType) -> Any:
        """The answer, after whatever the device asks on the way.

        :raises TrezorFailure: the device reports a failure.
        """
        answer = self._exchange(msg)
        while (callback := self._callbacks.get(type(answer))) is not None:
            answer = callback(self, answer)
        if isinstance(answer, messages.Failure):
            if answer.code == messages.FailureType.InvalidProtocol:
                raise Unsupported(detail="This program does not speak the protocol of this Trezor (THP).")
            raise TrezorFailure(answer)
        if isinstance(answer, messages.TxRequest):
            self.ui.follow(answer)
        return expect.ensure_isinstance(answer)

    def _exchange(self, msg: MessageType) -> Any:
        self._write(msg)
        return self._read()

    def _write(self, msg: MessageType) -> None:
        write(self.transport, *DEFAULT_MAPPING.encode(msg))

    def _read(self) -> Any:
        return DEFAULT_MAPPING.decode(*read(self.transport))

    def _callback_button(self, msg: Any) -> Any:
        self._or_cancel(lambda: self.ui.refuse_entry(msg.code))
        self._write(messages.ButtonAck())
        self.ui.button_request(msg)
        with self._gate:
            self._button_pending = True
            if self._give_up:
                self._write(messages.Cancel())
        try:
            return self._read()
        finally:
            with self._gate:
                self._button_pending = False

    def _callback_pin(self, _msg: Any) -> Any:
        places = self._or_cancel(self.ui.get_pin)
        self.ui.tell_check()
        answer = self._exchange(messages.PinMatrixAck(pin=places))
        if isinstance(answer, messages.Failure) and answer.code in _WRONG_PIN:
            raise Locked(detail="the PIN was wrong")
        return answer

    def _callback_passphrase(self, _msg: Any) -> Any:
        on_device = messages.Capability.PassphraseEntry in self.features.capabilities
        passphrase = self._or_cancel(lambda: self.ui.get_passphrase(on_device))
        if passphrase is None:
            return self._exchange(messages.PassphraseAck(on_device=True))
        if passphrase:
            self.ui.words = HIDDEN_WALLET
        return self._exchange(messages.PassphraseAck(passphrase=passphrase, on_device=False))

    def _or_cancel(self, answer: Callable[[], Any]) -> Any:
        """The answer; without one, send Cancel, so that the device does not wait for it."""
        try:
            return answer()
        except BaseException:
            self._exchange(messages.Cancel())
            raise

    def clear(self) -> None:
        """End what a killed worker left open: send Cancel and Initialize, and drop all messages before the
        answer.
        """
        self._write(messages.Cancel())
        self._write(messages.Initialize(session_id=self.wallet))
        for _ in range(_MAX_STALE_MESSAGES):
            if isinstance(self._read(), messages.Features):
                return
        raise TransportException("the device does not become idle")

    _callbacks: ClassVar[Mapping[type, Callable[..., Any]]] = {
        messages.ButtonRequest: _callback_button,
        messages.PinMatrixRequest: _callback_pin,
        messages.PassphraseRequest: _callback_passphrase,
    }


def is_locked(features: Any) -> bool:
    return bool(features.pin_protection) and features.unlocked is False
