"""The conversation with a Trezor: trezorlib's client, which here asks nobody unasked, can be cancelled, and keeps its session."""

import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from hwilib.devices.trezorlib import messages, models
from hwilib.devices.trezorlib.client import PASSPHRASE_ON_DEVICE
from hwilib.devices.trezorlib.client import TrezorClient as Wire
from hwilib.devices.trezorlib.exceptions import TrezorFailure
from hwilib.devices.trezorlib.transport import TransportException

from firmware_bridge.errors import Locked, Unsupported
from firmware_bridge.hwi_client.trezor.codec import CODEC
from firmware_bridge.hwi_client.trezor.mend import mend
from firmware_bridge.hwi_client.trezor.screen import PassphraseNeeded, PinNeeded, Screen
from firmware_bridge.port import DeviceFailure

# Messages that may still be on their way when a cut-off conversation is cleared.
_MAX_STALE_MESSAGES: Final = 16
# FailureType.InvalidProtocol of messages-common.proto, newer than HWI's copy.
_INVALID_PROTOCOL: Final = 17
_WRONG_PIN: Final = (messages.FailureType.PinInvalid, messages.FailureType.PinExpected)

T = TypeVar("T")


class Connection(Wire):  # type: ignore[misc]  # HWI is untyped
    """`session`: the one that a passphrase was given in, or None."""

    def __init__(self, transport: Any, screen: Screen, session: bytes | None = None) -> None:
        super().__init__(transport, ui=screen, session_id=session, _init_device=False)
        self.mapping = CODEC
        self.features: Any = None
        self.wallet = session
        """The session of the wallet that `unlock` opened, where there is one."""
        self._gate = threading.Lock()
        self._button_pending = False
        self._give_up = False

    def look(self) -> Any:
        """What the device tells about itself without being unlocked; on later models nothing else is answered before.

        :raises DeviceFailure: it cannot be worked with at all, and why.
        """
        features = self.refresh_features()
        if features.bootloader_mode:
            raise _unusable("The device is in its bootloader: connect it again without pressing a button.")
        if not features.initialized:
            raise _unusable("The device has no keys yet: set it up first.")
        return features

    def wake(self) -> None:
        """Be ready for an operation, in the right session. Nobody is asked.

        :raises PinNeeded: the device is locked.
        :raises PassphraseNeeded: it wants a passphrase, or has forgotten the session of the one it was given.
        """
        features = self.look()
        if is_locked(features):
            raise PinNeeded
        if features.passphrase_protection:
            self._resume()
        else:
            self.init_device()

    def begin_unlocking(self) -> None:
        """Choose the session to unlock in: a locked device may still remember a passphrase.

        Where nothing is locked, it is the passphrase that shall be another.
        """
        features = self.look()
        if is_locked(features):
            self.init_device(session_id=self.wallet)
        else:
            self.init_device(new_session=bool(features.passphrase_protection))

    def keep_session(self) -> str | None:
        """What to open the device with from now on; None where it asks for no passphrase."""
        self.wallet = self.session_id if self.refresh_features().passphrase_protection else None
        return None if self.wallet is None else self.wallet.hex()

    def _resume(self) -> None:
        if self.wallet is None:
            raise PassphraseNeeded
        # A session that it does not know it replaces by a new one, which would be another wallet.
        if self.init_device(session_id=self.wallet) != self.wallet:
            self.wallet = None
            raise PassphraseNeeded("the device has forgotten the passphrase")

    def start_over(self) -> None:
        """Forget a cancel that came too late for the operation before, and how far that was."""
        self.ui.progress = None
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

    def call(self, msg: Any, check_fw: bool = True) -> Any:
        answer = super().call(mend(msg), check_fw)
        if isinstance(answer, messages.TxRequest):
            self.ui.follow(answer)
        return answer

    def refresh_features(self) -> Any:
        """As trezorlib's, but a device that answers with a failure may say which."""
        answer = self.call_raw(messages.GetFeatures())
        if isinstance(answer, messages.Failure):
            if answer.code == _INVALID_PROTOCOL:
                raise _unusable("HWI cannot speak the protocol of this Trezor (THP).")
            raise TrezorFailure(answer)
        if not isinstance(answer, messages.Features):
            raise TransportException("it answered something else than what it is")
        self._refresh_features(answer)
        return answer

    def _refresh_features(self, features: Any) -> None:
        self.features = features
        if models.by_name(features.model or "1") is None:
            raise _unusable("HWI does not know this Trezor model.")
        super()._refresh_features(features)

    def _raw_write(self, msg: Any) -> None:
        # Without trezorlib's log: it would hold the PIN and the passphrase.
        self.transport.write(*self.mapping.encode(msg))

    def _raw_read(self) -> Any:
        return self.mapping.decode(*self.transport.read())

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
        answer = self.call_raw(messages.PinMatrixAck(pin=places))
        if isinstance(answer, messages.Failure) and answer.code in _WRONG_PIN:
            raise DeviceFailure(Locked.code, "the PIN was wrong")
        return answer

    def _callback_passphrase(self, _msg: Any) -> Any:
        on_device = messages.Capability.PassphraseEntry in self.features.capabilities
        passphrase = self._or_cancel(lambda: self.ui.get_passphrase(on_device))
        if passphrase is PASSPHRASE_ON_DEVICE:
            return self.call_raw(messages.PassphraseAck(on_device=True))
        return self.call_raw(messages.PassphraseAck(passphrase=passphrase, on_device=False))

    def _or_cancel(self, answer: Callable[[], T]) -> T:
        """Where there is no answer, the device is told, so that it does not go on waiting for one."""
        try:
            return answer()
        except BaseException:
            self.call_raw(messages.Cancel())
            raise

    def clear(self) -> None:
        """End what an earlier, killed worker left open: Cancel, then a fresh start, whatever was still to be said."""
        self.open()
        try:
            self._raw_write(messages.Cancel())
            self._raw_write(messages.Initialize(session_id=self.wallet))
            for _ in range(_MAX_STALE_MESSAGES):
                if isinstance(self._raw_read(), messages.Features):
                    return
            raise TransportException("the device does not return to rest")
        finally:
            self.close()


def is_locked(features: Any) -> bool:
    return bool(features.pin_protection) and features.unlocked is False


def _unusable(why: str) -> DeviceFailure:
    return DeviceFailure(Unsupported.code, why)
