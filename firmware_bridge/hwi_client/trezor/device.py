"""Trezor through HWI. Only the person approves, and only `unlock` asks for a secret. Messages that the model
is known to refuse are refused before anything is sent; so are transactions, by `firmware_bridge.limits`.
"""

from base64 import b64encode
from collections.abc import Mapping
from typing import Final

from hwilib.devices.trezor import TrezorClient
from hwilib.devices.trezorlib import btc, messages
from hwilib.devices.trezorlib.transport import TransportException
from hwilib.hwwclient import HardwareWalletClient
from hwilib.key import ExtendedKey, parse_path

from firmware_bridge import operations
from firmware_bridge.errors import BridgeError, Unsupported
from firmware_bridge.hwi_client.base import (
    OpenDevice,
    chain_of,
    parse_psbt,
)
from firmware_bridge.hwi_client.trezor.messages import address_request
from firmware_bridge.hwi_client.trezor.screen import (
    GREETING,
    MESSAGE_ON_ONE,
    SigningProgress,
    TrezorUi,
)
from firmware_bridge.hwi_client.trezor.wire import TrezorConnection, transport_at
from firmware_bridge.model import Endpoint, Family
from firmware_bridge.protocol import DriverHost, WorkerCall
from multisig import Network

_ONE: Final = "1"
_MODELS: Final[Mapping[str, str]] = {_ONE: "Trezor One", "T": "Trezor Model T"}
_HARDENED_ZERO: Final = [0x80000000]
_GREETING: Final = "Is this the device you mean?"
# Of a Trezor One (legacy/v1.14.1): SignMessage.message in protob/messages-bitcoin.options ("bytes overflow").
# Of later models no limit is known.
_MAX_MESSAGE: Final = 1024


class _Hwi(TrezorClient):  # type: ignore[misc]  # HWI is untyped
    """HWI's client on our connection. HWI's constructor scans for devices, and presses YES on emulators."""

    def __init__(self, connection: TrezorConnection, network: Network) -> None:
        HardwareWalletClient.__init__(self, "", "", expert=False, chain=chain_of(network))
        self.client = connection
        self.simulator = False
        self.type = "Trezor"
        self.coin_name = "Bitcoin" if network is Network.MAINNET else "Testnet"

    def _check_unlocked(self) -> None:
        """Nothing to do: every operation here wakes the device itself.

        HWI's check lets later models ask for PIN and passphrase in the middle of any operation.
        """


class TrezorDevice(OpenDevice):
    family = Family.TREZOR

    def __init__(self, connection: TrezorConnection, network: Network) -> None:
        self._connection = connection
        self._network = network
        self._hwi = _Hwi(connection, network)

    def begin(self, op: str) -> None:  # noqa: ARG002 - the same for each
        self._connection.start_over()

    def cancel(self) -> None:
        self._connection.request_cancel()

    def close(self) -> None:
        while self._connection.session_counter:
            self._connection.close()

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
        return operations.Keys(fingerprint, tuple(self._read_xpub(path) for path in request.paths))

    def sign(self, request: operations.Sign) -> str:
        self._connection.wake()
        tx = parse_psbt(request.psbt)
        self._connection.ui.progress = SigningProgress(
            len(tx.inputs),
            request.payments,
            once_each=self._is_one(),
        )
        return str(self._hwi.sign_tx(tx).serialize())

    def sign_message(self, request: operations.SignMessage) -> str:
        """Signs the text's bytes as they are: HWI normalises the text first (NFC), which may change it."""
        message = request.text.encode()
        self._connection.wake()
        one = self._is_one()
        if one and len(message) > _MAX_MESSAGE:
            most = f"this model signs messages of up to {_MAX_MESSAGE:,} bytes"
            raise Unsupported(detail=f"{most}, and this one has {len(message):,}")
        path = parse_path(request.path)
        self._connection.ui.words = MESSAGE_ON_ONE if one else operations.CONFIRM_MESSAGE
        answer = self._connection.call(
            messages.SignMessage(
                coin_name=self._hwi.coin_name,
                address_n=path,
                message=message,
                script_type=messages.InputScriptType.SPENDADDRESS,
            )
        )
        if not isinstance(answer, messages.MessageSignature):
            raise TransportException("it did not answer with a signature")
        return b64encode(answer.signature).decode()

    def show_address(self, request: operations.ShowAddress) -> str:
        """Asks once, at the device's own path: HWI tries every cosigner's, and takes a refusal for a wrong
        path.
        """
        fingerprint = self.fingerprint()
        path, multisig = address_request(request, fingerprint, self._network)
        address = btc.get_address(
            self._connection,
            self._hwi.coin_name,
            path,
            show_display=True,
            multisig=multisig,
            script_type=messages.InputScriptType.SPENDWITNESS,
        )
        return str(address)

    def identify(self) -> None:
        """A harmless question; a Trezor One shows it without our text."""
        self._connection.look()
        self._connection.ui.words = GREETING
        self._connection.ping(_GREETING, button_protection=True)

    def unlock(self) -> operations.Unlocked:
        self._connection.begin_unlocking()
        with self._connection.ui.person():
            fingerprint = self._read_fingerprint()
        return operations.Unlocked(fingerprint, self._connection.keep_session())

    def _is_one(self) -> bool:
        return (self._connection.features.model or _ONE) == _ONE

    def _read_fingerprint(self) -> str:
        node = btc.get_public_node(self._connection, _HARDENED_ZERO, coin_name="Bitcoin")
        return str(ExtendedKey.deserialize(node.xpub).parent_fingerprint.hex())

    def _read_xpub(self, path: str) -> str:
        node = btc.get_public_node(self._connection, parse_path(path), coin_name=self._hwi.coin_name)
        return str(node.xpub)


def open_device(
    endpoint: Endpoint, network: Network, caller: DriverHost, request: WorkerCall
) -> TrezorDevice:
    session = None if request.session is None else bytes.fromhex(request.session)
    connection = TrezorConnection(transport_at(endpoint), TrezorUi(caller), session)
    if request.recover:
        connection.clear()
    # Open until the device is closed: one claim of the interface, one socket.
    connection.open()
    return TrezorDevice(connection, network)
