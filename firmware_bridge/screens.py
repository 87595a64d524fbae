"""What a device shows of a payment before the person approves it, and on which screen.

Only what the person compares: amounts, addresses and data. The rows follow the transcripts of
``tests/conformance/transcripts``, to which the tests hold them; of a maker that is not here nothing is known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from firmware_bridge.model import Family
from multisig import Network, NetworkKind
from multisig.transaction import LOCKTIME_THRESHOLD

_SATS_PER_BTC: Final = 100_000_000


@dataclass(frozen=True)
class Figure:
    """One thing to compare. ``label``: what it is, in our words; ``value``: what the screen says."""

    label: str
    value: str


Screen = tuple[Figure, ...]


@dataclass(frozen=True)
class Output:
    """``address``: as devices write it. ``data``: hex of an OP_RETURN, in the place of an address."""

    sats: int
    address: str = ""
    data: str = ""


@dataclass(frozen=True)
class Payment:
    """What leaves the policy is ``outputs``, in the transaction's order; what comes back to it is
    ``change``. ``locktime``: nLockTime, a height or Unix seconds. ``locktime_holds``: not every input is
    final.
    """

    outputs: Sequence[Output]
    change: Sequence[Output]
    fee: int
    locktime: int = 0
    locktime_holds: bool = True

    @property
    def paid(self) -> int:
        return sum(output.sats for output in self.outputs)

    @property
    def back(self) -> int:
        return sum(output.sats for output in self.change)


@dataclass(frozen=True)
class Style:
    """How one maker's devices tell a payment.

    ``unit``: of every test network; mainnet's is BTC. ``trimmed``: without zeros at the end. ``grouped``:
    thousands in groups (Trezor One 1.14.2; a line that is too long for its screen is cut). ``apart``: each
    output has a screen of its own, and so have the figures of ``last``. ``first``, ``last``: what stands
    before and after the outputs, by the names in ``_sums``; ``to_itself``: the same before a payment that
    leaves nothing. ``idle_locktime``: what it says of a lock time without effect; empty where it shows no
    lock time at all.
    """

    unit: str
    trimmed: bool
    apart: bool
    first: tuple[str, ...] = ()
    to_itself: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    change: bool = False
    amount_of_data: bool = True
    before_data: str = ""
    idle_locktime: str = ""
    grouped: bool = False


STYLES: Final[Mapping[Family, Style]] = MappingProxyType(
    {
        Family.TREZOR: Style(
            "TEST",
            trimmed=True,
            apart=True,
            last=("Total", "Fee in it"),
            amount_of_data=False,
            idle_locktime="Locktime is set but will have no effect.",
            grouped=True,
        ),
        Family.COLDCARD: Style(
            "XTN",
            trimmed=False,
            apart=False,
            first=("Sent in all", "Network fee"),
            to_itself=("Moved within the wallet", "Network fee"),
            change=True,
            idle_locktime="Locktime has no effect!",
        ),
        Family.LEDGER: Style(
            "TEST", trimmed=True, apart=False, to_itself=("Nothing",), last=("Network fee",), before_data="0x"
        ),
    }
)


def payment_screens(
    family: Family, network: Network, payment: Payment, most: int | None = None
) -> tuple[Screen, ...]:
    """In the device's order; empty where the maker's screens are not known. ``most``: how many outputs are
    written out, the first ones.
    """
    style = STYLES.get(family)
    if style is None:
        return ()
    sums = _sums(style, network, payment)
    first = style.first if payment.outputs else style.to_itself
    outputs = [
        _output(style, network, output, label) for output, label in _outputs_shown(style, payment)[:most]
    ]
    last = tuple(sums[name] for name in style.last)
    before = tuple(sums[name] for name in first)
    screens = (before, *outputs, _locktime(style, payment), last)
    if style.apart:
        return tuple(screen for screen in screens if screen)
    return (tuple(figure for screen in screens for figure in screen),)


def number_of_outputs(family: Family, payment: Payment) -> int:
    """How many the device shows; 0 where the maker's screens are not known."""
    style = STYLES.get(family)
    return 0 if style is None else len(_outputs_shown(style, payment))


def _outputs_shown(style: Style, payment: Payment) -> list[tuple[Output, str]]:
    """In the device's order, each with the label of its amount."""
    back = payment.change if style.change else ()
    return [
        *((output, "Amount") for output in payment.outputs),
        *((output, "Comes back") for output in back),
    ]


@dataclass(frozen=True)
class Proof:
    """A message (BIP-322), the address that signs it, as devices write it, and what its coins hold."""

    message: str
    address: str
    sats: int


def proof_screens(family: Family, network: Network, proof: Proof) -> tuple[Screen, ...]:
    """Empty for makers whose devices do not sign such messages."""
    match family:
        case Family.COLDCARD:
            coins = (Figure("Amount", _amount(STYLES[family], network, proof.sats)),) if proof.sats else ()
            return ((Figure("Message", proof.message), *coins, Figure("Address", proof.address)),)
        case Family.LEDGER:
            nothing = _amount(STYLES[family], network, 0)
            return ((Figure("Amount", nothing), Figure("To", "OP_RETURN"), Figure("Network fee", nothing)),)
        case _:
            return ()


def _sums(style: Style, network: Network, payment: Payment) -> dict[str, Figure]:
    told = {
        "Sent in all": payment.paid,
        "Moved within the wallet": payment.back,
        "Network fee": payment.fee,
        "Total": payment.paid + payment.fee,
        "Fee in it": payment.fee,
        "Nothing": 0,
    }
    found = {name: Figure(name, _amount(style, network, sats)) for name, sats in told.items()}
    return {**found, "Nothing": Figure("Amount", f"{found['Nothing'].value} (self-transfer)")}


def _locktime(style: Style, payment: Payment) -> Screen:
    """A time is shown as seconds or as a date, depending on the model: here as both."""
    if not payment.locktime or not style.idle_locktime:
        return ()
    if not payment.locktime_holds:
        told = style.idle_locktime
    elif payment.locktime < LOCKTIME_THRESHOLD:
        told = str(payment.locktime)
    else:
        told = f"{payment.locktime}, {datetime.fromtimestamp(payment.locktime, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return (Figure("Lock time", told),)


def _output(style: Style, network: Network, output: Output, amount: str) -> Screen:
    figure = Figure(amount, _amount(style, network, output.sats))
    if not output.data:
        return figure, Figure("To", output.address)
    data = Figure("Data", f"{style.before_data}{output.data}")
    return (figure, data) if style.amount_of_data else (data,)


def _amount(style: Style, network: Network, sats: int) -> str:
    whole, rest = divmod(sats, _SATS_PER_BTC)
    text = f"{whole:,}.{rest:08d}" if style.grouped else f"{whole}.{rest:08d}"
    if style.trimmed:
        text = text.rstrip("0").rstrip(".")
    return f"{text} {'BTC' if network.kind is NetworkKind.MAINNET else style.unit}"
