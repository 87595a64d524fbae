"""What the drivers share: named operations, outcomes for every exception, and policies as HWI's objects."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hwilib.common import Chain
from hwilib.descriptor import PubkeyProvider, parse_descriptor
from hwilib.errors import HWWError
from hwilib.psbt import PSBT

from firmware_bridge import operations
from firmware_bridge.errors import BridgeError, Unsupported, WrongDevice, from_worker
from firmware_bridge.faults import ReportedFault, outcome
from firmware_bridge.model import Family
from firmware_bridge.protocol import DriverHost
from multisig import Network, OriginKey

_CHAINS: Final = {
    Network.MAINNET: Chain.MAIN,
    Network.TESTNET4: Chain.TESTNET4,
    Network.SIGNET: Chain.SIGNET,
    Network.REGTEST: Chain.REGTEST,
}


class OpenDevice:
    """An open device of one maker: see `firmware_bridge.protocol.DeviceClient`. It has a method for each of
    the `operations.OPERATIONS` that its family supports.
    """

    family: Family

    def call(self, op: str, args: Mapping[str, Any]) -> Any:
        """:raises BridgeError: the outcome of any exception."""
        operation = getattr(self, op, None) if op in operations.OPERATIONS else None
        if operation is None:
            raise Unsupported(detail=f"{op} is not available on devices of this family")
        shape = operations.OPERATIONS[op]
        try:
            self.begin(op)
            return operation() if shape is None else operation(shape(**args))
        except BridgeError:
            raise
        except Exception as error:
            raise self.failure(error) from error

    def begin(self, op: str) -> None:
        """What comes before each operation."""

    def failure(self, error: Exception) -> BridgeError:
        return failure(self.family, error)

    def cancel(self) -> None:
        """Most devices cannot cancel; the bridge then kills the worker."""

    def close(self) -> None:
        raise NotImplementedError


class HwiDevice(OpenDevice):
    """A device whose keys and signatures come from HWI's own client."""

    _hwi: Any
    _caller: DriverHost

    def wake(self) -> None:
        """Prepare for an operation, without asking the person."""
        raise NotImplementedError

    def require_known(self, policy: operations.PolicyText) -> None:
        """:raises BridgeError: the device would sign without knowing the vault."""

    def fingerprint(self) -> str:
        self.wake()
        return str(self._hwi.get_master_fingerprint().hex())

    def xpubs(self, request: operations.Xpubs) -> operations.Keys:
        fingerprint = self.fingerprint()
        xpubs = (self._hwi.get_pubkey_at_path(path).to_string() for path in request.paths)
        return operations.Keys(fingerprint, tuple(xpubs))

    def sign(self, request: operations.Sign) -> str:
        self.wake()
        self.require_known(request.policy)
        self._caller.tell(*operations.CONFIRM_TRANSACTION)
        return str(self._hwi.sign_tx(parse_psbt(request.psbt)).serialize())

    def sign_message(self, request: operations.SignMessage) -> str:
        self.wake()
        self._caller.tell(*operations.CONFIRM_MESSAGE)
        return str(self._hwi.sign_message(request.text, request.path))


def chain_of(network: Network) -> Chain:
    return _CHAINS[network]


def parse_psbt(text: str) -> PSBT:
    """A new HWI PSBT from base64, because `sign_tx` changes its argument."""
    psbt = PSBT()
    psbt.deserialize(text)
    return psbt


def failure(family: Family, error: BaseException) -> BridgeError:
    """The outcome of anything raised by HWI, a maker's library, libusb, hidapi or the system."""
    meant, detail = outcome(family, describe(error))
    return from_worker(meant.code, detail)


def obstructed(model: str, obstacle: BridgeError, firmware: str | None = None) -> operations.Probed:
    """What keeps the device from working."""
    return operations.Probed(model, obstacle=obstacle.code, detail=obstacle.detail, firmware=firmware)


def describe(error: BaseException) -> ReportedFault:
    """The exception and the causes that HWI wrapped, as plain values."""
    chain = _chain(error)
    statuses = (status for link in chain if (status := _status(link)) is not None)
    codes = (link.get_code() for link in reversed(chain) if isinstance(link, HWWError))
    return ReportedFault(
        kinds=tuple(kind.__name__ for link in chain for kind in type(link).__mro__),
        text=_text(error),
        status=next(statuses, None),
        hwi_code=next(codes, None),
    )


def _chain(error: BaseException) -> list[BaseException]:
    """The exception and what HWI wrapped in it, innermost first."""
    links: list[BaseException] = [error]
    while isinstance(links[0], HWWError) and links[0].__context__ is not None:
        links.insert(0, links[0].__context__)
    return links


def _status(error: BaseException) -> int | None:
    """Ledger's status word (`sw`, or hexadecimal in the first argument), Trezor's failure type (`code`)."""
    if isinstance(error, HWWError):
        return None
    for name in ("sw", "code"):
        value = getattr(error, name, None)
        if isinstance(value, int):
            return int(value)
    first = error.args[0] if error.args else None
    if isinstance(first, str) and first.startswith("0x"):
        try:
            return int(first, 16)
        except ValueError:
            return None
    return None


def _text(error: BaseException) -> str:
    if isinstance(error, HWWError):
        return str(error.get_msg())
    message = getattr(error, "message", None)
    if isinstance(message, str) and message:
        return message
    try:
        words = str(error)
    except Exception:  # noqa: BLE001 - trezorlib's str() raises KeyError for unknown failure codes
        words = repr(error.args)
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def apostrophes(path: str) -> str:
    """A path, or a key's origin, with the mark of hardened levels that Coldcard, Ledger and HWI read."""
    return path.replace("h", "'")


def keys(policy: operations.PolicyText) -> list[PubkeyProvider]:
    """Each key of the policy with its origin, in the order of its descriptor.

    HWI parses whole descriptors alike in every release, and a lone key with other arguments after 3.2.0.
    """
    return [parse_descriptor(f"wpkh({key})").pubkeys[0] for key in policy.keys]


def key_path(policy: operations.PolicyText, chain: int, index: int) -> str:
    """From the master key to the key of a profile's address."""
    (key,) = keys(policy)
    return f"{key.origin.get_derivation_path()}/{chain}/{index}"


def cosigner_keys(
    policy: operations.PolicyText, fingerprint: str, network: Network
) -> tuple[tuple[OriginKey, ...], OriginKey]:
    """The policy's keys, and the one of the device with this fingerprint.

    :raises BridgeError: it has none.
    """
    keys = tuple(OriginKey.parse(text, network) for text in policy.keys)
    own = next((key for key in keys if key.fingerprint.hex == fingerprint), None)
    if own is None:
        raise WrongDevice(detail=f"the device ({fingerprint}) is not a signer here")
    return keys, own


def same_quorum(
    policy: operations.PolicyText, threshold: int, signers: Sequence[tuple[bytes, Sequence[int], str]]
) -> bool:
    """Whether a device's record is the policy: threshold, and (fingerprint, path, extended key) of each
    cosigner in any order.
    """
    ours = {(key.origin.fingerprint, tuple(key.origin.path), key.pubkey) for key in keys(policy)}
    theirs = [(bytes(fingerprint), tuple(path), xpub) for fingerprint, path, xpub in signers]
    return threshold == policy.threshold and len(theirs) == len(ours) and set(theirs) == ours
