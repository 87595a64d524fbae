"""What the drivers share: named operations, and outcomes for every exception."""

from collections.abc import Mapping
from typing import Any

from firmware_bridge import operations
from firmware_bridge.errors import BridgeError, Unsupported, WrongDevice, from_worker
from firmware_bridge.faults import ReportedFault, outcome
from firmware_bridge.model import Family
from multisig import Network, OriginKey


class OpenDevice:
    """An open device of one maker: see `firmware_bridge.protocol.DeviceClient`. It has a method for each of
    the `operations.OPERATIONS` that its family supports.
    """

    family: Family
    _link: Any
    """What is closed with the device."""

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
        self._link.close()


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
    codes = (link.get_code() for link in reversed(chain) if _is_hwi(link))
    return ReportedFault(
        kinds=tuple(kind.__name__ for link in chain for kind in type(link).__mro__),
        text=_text(error),
        status=next(statuses, None),
        hwi_code=next(codes, None),
    )


def _is_hwi(error: BaseException) -> bool:
    """Known by its name: not every family's library is HWI's."""
    return any(kind.__name__ == "HWWError" for kind in type(error).__mro__)


def _chain(error: BaseException) -> list[Any]:
    """The exception and what HWI wrapped in it, innermost first."""
    links: list[Any] = [error]
    while _is_hwi(links[0]) and links[0].__context__ is not None:
        links.insert(0, links[0].__context__)
    return links


def _status(error: BaseException) -> int | None:
    """Ledger's status word (`sw`, or hexadecimal in the first argument), Trezor's failure type (`code`)."""
    if _is_hwi(error):
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


def _text(error: Any) -> str:
    if _is_hwi(error):
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
