"""Trezor through its maker's library. Only the person approves, and only `unlock` asks for a secret. Messages
that the model is known to refuse are refused before anything is sent; so are transactions, by
`firmware_bridge.limits`.
"""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

from firmware_bridge import operations
from firmware_bridge.errors import BridgeError, Unsupported
from firmware_bridge.hwi_client.base import OpenDevice
from firmware_bridge.hwi_client.trezor.library import messages, parse_path
from firmware_bridge.hwi_client.trezor.messages import PolicyMessages, coin_of
from firmware_bridge.hwi_client.trezor.screen import (
    GREETING,
    MESSAGE_ON_ONE,
    SigningProgress,
    TrezorUi,
)
from firmware_bridge.hwi_client.trezor.wire import TrezorConnection, transport_at
from firmware_bridge.model import Endpoint, Family
from firmware_bridge.protocol import DriverHost, WorkerCall
from multisig import Fingerprint, Network, Psbt

_ONE: Final = "1"
_MODELS: Final[Mapping[str, str]] = {_ONE: "Trezor One", "T": "Trezor Model T"}
_GREETING: Final = "Is this the device you mean?"
# Of a Trezor One (legacy/v1.14.1): SignMessage.message in protob/messages-bitcoin.options ("bytes overflow").
# Of later models no limit is known.
_MAX_MESSAGE: Final = 1024


class TrezorDevice(OpenDevice):
    family = Family.TREZOR

    def __init__(self, connection: TrezorConnection, network: Network) -> None:
        self._connection, self._link = connection, connection.transport
        self._network = network

    def begin(self, op: str) -> None:  # noqa: ARG002 - the same for each
        self._connection.start_over()

    def cancel(self) -> None:
        self._connection.request_cancel()

    def probe(self) -> operations.Probed:
        try:
            master = self.fingerprint()
        except BridgeError as reason:
            if self._connection.features is None:
                raise
            return self._obstructed(reason.code, reason.detail)
        return self._obstructed(None, fingerprint=master)

    def _obstructed(
        self, obstacle: str | None, detail: str | None = None, fingerprint: str | None = None
    ) -> operations.Probed:
        features = self._connection.features
        return operations.Probed(
            self._model(),
            label=features.label,
            fingerprint=fingerprint,
            obstacle=obstacle,
            detail=detail,
            firmware=f"{features.major_version}.{features.minor_version}.{features.patch_version}",
        )

    def _model(self) -> str:
        name = self._connection.features.model or _ONE
        return _MODELS.get(name, f"Trezor {name}")

    def fingerprint(self) -> str:
        self._connection.wake()
        return self._read_fingerprint()

    def xpubs(self, request: operations.Xpubs) -> operations.Keys:
        fingerprint = self.fingerprint()
        return operations.Keys(fingerprint, tuple(self._public_node(path).xpub for path in request.paths))

    def sign(self, request: operations.Sign) -> str:
        policy = self._messages(request.policy)
        psbt = Psbt.parse(request.psbt)
        self._connection.ui.progress = SigningProgress(
            len(psbt.inputs), request.payments, once_each=self._is_one()
        )
        return policy.sign(self._connection, psbt).to_base64()

    def _messages(self, policy: operations.PolicyText) -> PolicyMessages:
        return PolicyMessages(policy, self.fingerprint(), self._network)

    def sign_message(self, request: operations.SignMessage) -> str:
        """Signs the text's bytes as they are. The library's own function normalises a text (NFC)."""
        message = request.text.encode()
        self._connection.wake()
        one = self._is_one()
        if one and len(message) > _MAX_MESSAGE:
            most = f"this model signs messages of up to {_MAX_MESSAGE:,} bytes"
            raise Unsupported(detail=f"{most}, and this one has {len(message):,}")
        self._connection.ui.words = MESSAGE_ON_ONE if one else operations.CONFIRM_MESSAGE
        question = messages.SignMessage(
            coin_name=coin_of(self._network), address_n=parse_path(request.path), message=message
        )
        answer = self._connection.call(question, expect=messages.MessageSignature)
        return b64encode(answer.signature).decode()

    def show_address(self, request: operations.ShowAddress) -> str:
        """Asks once, at the device's own path: HWI tries every cosigner's, and takes a refusal for a wrong
        path.
        """
        policy = self._messages(request.policy)
        question = messages.GetAddress(
            coin_name=coin_of(self._network),
            show_display=True,
            script_type=messages.InputScriptType.SPENDWITNESS,
            **policy.address(request.chain, request.index),
        )
        return str(self._connection.call(question, expect=messages.Address).address)

    def identify(self) -> None:
        """A harmless question; a Trezor One shows it without our text."""
        self._connection.look()
        self._connection.ui.words = GREETING
        self._connection.call(messages.Ping(message=_GREETING, button_protection=True))

    def unlock(self) -> operations.Unlocked:
        self._connection.begin_unlocking()
        with self._connection.ui.person():
            fingerprint = self._read_fingerprint()
        return operations.Unlocked(fingerprint, self._connection.keep_session())

    def _is_one(self) -> bool:
        return (self._connection.features.model or _ONE) == _ONE

    def _read_fingerprint(self) -> str:
        # A child knows its parent's; older firmware does not tell the root's.
        node = self._public_node("m/0h").node
        return Fingerprint(node.fingerprint.to_bytes(4)).hex

    def _public_node(self, path: str) -> Any:
        question = messages.GetPublicKey(address_n=parse_path(path), coin_name=coin_of(self._network))
        return self._connection.call(question, expect=messages.PublicKey)


def open_device(
    endpoint: Endpoint, network: Network, caller: DriverHost, request: WorkerCall
) -> TrezorDevice:
    session = None if request.session is None else bytes.fromhex(request.session)
    connection = TrezorConnection(transport_at(endpoint), TrezorUi(caller), session)
    # Open until the device is closed: one claim of the interface, one socket.
    connection.transport.open()
    try:
        if request.recover:
            connection.clear()
    except BaseException:
        connection.transport.close()
        raise
    return TrezorDevice(connection, network)
