"""The Bitcoin app of a Ledger: whether it is open for the right network (S14), a vault as its wallet policy
(BIP-388), and its progress with a transaction.

A person can switch apps at any time, and HWI never compares the app with its `--chain`: a client for mainnet
signs with the testnet app. So every operation first asks for the app, which takes one exchange.
"""

from dataclasses import dataclass
from typing import Any, Final

from firmware_bridge.errors import Busy, DeviceFault, Locked, NotEnrolled, Unsupported, WrongApp, from_worker
from firmware_bridge.hwi_client.base import apostrophes
from firmware_bridge.hwi_client.ledger import library
from firmware_bridge.hwi_client.ledger.link import (
    DENIED,
    INTERRUPTED,
    NOT_SUPPORTED,
    OK,
    LedgerLink,
    status_of,
)
from firmware_bridge.makers.versions import FirmwareVersion
from firmware_bridge.operations import PolicyText
from firmware_bridge.protocol import DriverHost
from multisig import Network, NetworkKind

# The default policy of a single-signature account needs no registration: no name, no proof.
_SINGLE_SIGNATURE: Final = "wpkh(@0/**)"


_MAINNET_APP: Final = "Bitcoin"
_TESTNET_APP: Final = "Bitcoin Test"
# Older apps have another protocol, which has single keys only.
_OLDEST: Final = FirmwareVersion.of("2.1.0")
_TOO_OLD: Final = "this version of the Bitcoin app knows no vaults: update it to 2.1 or later"
# The answer of an emulator that was started without the app's name: its keys tell the network.
_NAMELESS: Final = "app"


@dataclass(frozen=True)
class OpenApp:
    name: str
    version: str


# Statuses instead of the app's name: from the device's system while it is locked, and from an app whose
# earlier host was killed, right after the person answered that host's question.
_ANSWERS_OF_NO_APP: Final = {
    NOT_SUPPORTED: Locked.code,
    DENIED: Busy.code,
    INTERRUPTED: Busy.code,
    OK: DeviceFault.code,
}


def read_app(link: LedgerLink) -> OpenApp:
    """:raises BridgeError: the device is locked, or still busy with another host's command."""
    try:
        name, version, _flags = library.Client(link).get_version()
    except Exception as error:
        status = status_of(error)
        if status not in _ANSWERS_OF_NO_APP:
            raise
        words = "it does not report which app is open" if status == OK else None
        raise from_worker(_ANSWERS_OF_NO_APP[status], words) from error
    return OpenApp(name, version)


def require_network(app: OpenApp, network: Network) -> None:
    """:raises BridgeError: another app is open, that of another network, the dashboard, or one that is too
    old.
    """
    wanted = _MAINNET_APP if network.kind == NetworkKind.MAINNET else _TESTNET_APP
    if app.name not in {wanted, _NAMELESS}:
        raise WrongApp(app.name)
    version = FirmwareVersion.parse(app.version)
    if version is not None and not version >= _OLDEST:
        raise Unsupported(detail=_TOO_OLD)


def require_keys_of(client: Any, app: OpenApp, network: Network) -> None:
    """Check the network of an app without a name by the form of its keys.

    :raises BridgeError: it is for another network.
    """
    if app.name != _NAMELESS:
        return
    try:
        key = client.get_extended_pubkey(account_path(network))
    except Exception as error:
        if status_of(error) == NOT_SUPPORTED:
            raise WrongApp(app.name) from error
        raise
    if key[:4] != ("xpub" if network.kind == NetworkKind.MAINNET else "tpub"):
        raise WrongApp(app.name)


def account_path(network: Network) -> str:
    """The first single-signature account (BIP-84), in the app's spelling."""
    return f"m/84'/{network.kind.coin_type}'/0'"


def wallet_of(policy: PolicyText) -> library.WalletPolicy:
    """The policy for the device, with its keys always in the order of the verification code.

    HWI makes one for each order of keys that it meets in a script. To the device each is another wallet.
    """
    keys = [ledger_key(key) for key in policy.keys]
    if not policy.is_vault:
        return library.WalletPolicy("", _SINGLE_SIGNATURE, keys)
    return library.MultisigWallet(policy.name, library.AddressType.WIT, policy.threshold, keys)


def proof_of(policy: PolicyText) -> bytes | None:
    """The registration's proof; None for a single-signature account.

    :raises BridgeError: the vault is not enrolled.
    """
    if not policy.is_vault:
        return None
    if policy.hmac is None:
        raise NotEnrolled
    return bytes.fromhex(policy.hmac)


def ledger_key(expression: str) -> str:
    """A key expression with its origin as the app writes it: an apostrophe after hardened levels."""
    origin, bracket, xpub = expression.partition("]")
    return apostrophes(origin) + bracket + xpub


def to_version_2(psbt: library.PSBT) -> None:
    """Convert the PSBT to version 2 (BIP-370), which the app reads, and add every input's witness UTXO."""
    psbt.convert_to_v2()
    for item in psbt.inputs:
        if item.non_witness_utxo is not None:
            item.witness_utxo = item.non_witness_utxo.vout[item.prev_out]


_ROOT_BYTES: Final = 32
# Version of the app -> how often it reads each input before it asks the person.
_READINGS: Final = dict.fromkeys(("2.4.0", "2.4.1", "2.4.2", "2.4.3", "2.4.4", "2.4.5", "2.4.6"), 3)


class Loading:
    """Follows one SIGN_PSBT command by the app's requests to its host, and reports its progress.

    The app reads every input three times before it shows anything (app-bitcoin-new 2.4.0 to 2.4.6,
    src/handler/sign_psbt.c: preprocess_inputs, and twice in compute_tx_hashes), and once more for each
    signature. Of other versions this is not known: they may ask as soon as they have read the inputs once.
    """

    def __init__(self, caller: DriverHost, inputs: int, version: str) -> None:
        self._caller = caller
        self._inputs = inputs
        self._readings = _READINGS.get(version)
        self._root = b""
        self._read = 0
        self._signing = False
        self._signed = 0

    def started(self, data: bytes) -> None:
        """`data`: the command's data (doc/bitcoin.md, SIGN_PSBT)."""
        parser = library.ByteStreamParser(data)
        parser.read_varint()
        parser.read_bytes(2 * _ROOT_BYTES)
        parser.read_varint()
        self._root = parser.read_bytes(_ROOT_BYTES)
        self._tell_sent(0)

    def may_ask(self) -> bool:
        """Whether the app may be asking the person now."""
        return self._read >= (self._readings or 1) and not self._signing

    def requested(self, request: bytes) -> None:
        """A request of the app to its host, or a signature."""
        if request[:1] == bytes([library.ClientCommandCode.YIELD]):
            self._tell_signed()
        elif (
            request[: 1 + _ROOT_BYTES]
            == bytes([library.ClientCommandCode.GET_MERKLE_LEAF_PROOF]) + self._root
        ):
            parser = library.ByteStreamParser(request[1 + _ROOT_BYTES :])
            parser.read_varint()
            self._reads(parser.read_varint())

    def _reads(self, index: int) -> None:
        if self._readings is not None and self._read >= self._readings:
            # The app reads an input again to sign it: the person has approved.
            if not self._signing:
                self._signing = True
                self._caller.tell("signing", "The device signs", 0, self._inputs)
            return
        if self._read == 0 and index > 0:
            self._tell_sent(index)
        elif self._read == 1 and index == 0:
            self._tell_sent(self._inputs)
        if index == self._inputs - 1:
            self._read += 1

    def _tell_sent(self, done: int) -> None:
        self._caller.tell("sending", "Sending the transaction to the device", done, self._inputs)

    def _tell_signed(self) -> None:
        self._signing = True
        # A device may yield too many signatures; they are checked later.
        self._signed = min(self._signed + 1, self._inputs)
        self._caller.tell("signing", "The device signs", self._signed, self._inputs)
