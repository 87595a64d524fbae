"""What a device shows of a payment before the person approves it, and on which screen.

Only what the person compares: amounts, addresses and data. A maker's `Style` follows the transcripts of
``tests/conformance/transcripts``, to which the tests hold it; without one nothing is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from firmware_bridge.makers import MAKERS
from firmware_bridge.makers.maker import Style
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
class ShownOutput:
    """``address``: as devices write it. ``data``: hex of an OP_RETURN, in the place of an address."""

    sats: int
    address: str = ""
    data: str = ""


@dataclass(frozen=True)
class ShownPayment:
    """What leaves the policy is ``outputs``, in the transaction's order; what comes back to it is
    ``change``. ``locktime``: nLockTime, a height or Unix seconds. ``locktime_holds``: not every input is
    final.
    """

    outputs: Sequence[ShownOutput]
    change: Sequence[ShownOutput]
    fee: int
    locktime: int = 0
    locktime_holds: bool = True

    @property
    def paid(self) -> int:
        return sum(output.sats for output in self.outputs)

    @property
    def back(self) -> int:
        return sum(output.sats for output in self.change)


def payment_screens(
    family: Family, network: Network, payment: ShownPayment, most: int | None = None
) -> tuple[Screen, ...]:
    """In the device's order; empty where the maker's screens are not known. ``most``: how many outputs are
    written out, the first ones.
    """
    style = MAKERS[family].style
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


def number_of_outputs(family: Family, payment: ShownPayment) -> int:
    """How many the device shows; 0 where the maker's screens are not known."""
    style = MAKERS[family].style
    return 0 if style is None else len(_outputs_shown(style, payment))


def _outputs_shown(style: Style, payment: ShownPayment) -> list[tuple[ShownOutput, str]]:
    """In the device's order, each with the label of its amount."""
    back = payment.change if style.change else ()
    return [
        *((output, "Amount") for output in payment.outputs),
        *((output, "Comes back") for output in back),
    ]


@dataclass(frozen=True)
class ShownProof:
    """A message (BIP-322), the address that signs it, as devices write it, and what its coins hold."""

    message: str
    address: str
    sats: int


def proof_screens(family: Family, network: Network, proof: ShownProof) -> tuple[Screen, ...]:
    """Empty for makers whose devices do not sign such messages."""
    style = MAKERS[family].style
    if style is None or not style.proof:
        return ()
    nothing = _amount(style, network, 0)
    figures = {
        "Message": Figure("Message", proof.message),
        "Coins": Figure("Amount", _amount(style, network, proof.sats)) if proof.sats else None,
        "Address": Figure("Address", proof.address),
        "Nothing": Figure("Amount", nothing),
        "To OP_RETURN": Figure("To", "OP_RETURN"),
        "No fee": Figure("Network fee", nothing),
    }
    return (tuple(figure for name in style.proof if (figure := figures[name]) is not None),)


def _sums(style: Style, network: Network, payment: ShownPayment) -> dict[str, Figure]:
    quantities = {
        "Sent in all": payment.paid,
        "Moved within the wallet": payment.back,
        "Network fee": payment.fee,
        "Total": payment.paid + payment.fee,
        "Fee in it": payment.fee,
        "Nothing": 0,
    }
    figures = {name: Figure(name, _amount(style, network, sats)) for name, sats in quantities.items()}
    return {**figures, "Nothing": Figure("Amount", f"{figures['Nothing'].value} (self-transfer)")}


def _locktime(style: Style, payment: ShownPayment) -> Screen:
    """A time is shown as seconds or as a date, depending on the model: here as both."""
    if not payment.locktime or not style.idle_locktime:
        return ()
    if not payment.locktime_holds:
        words = style.idle_locktime
    elif payment.locktime < LOCKTIME_THRESHOLD:
        words = str(payment.locktime)
    else:
        words = f"{payment.locktime}, {datetime.fromtimestamp(payment.locktime, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return (Figure("Lock time", words),)


def _output(style: Style, network: Network, output: ShownOutput, amount: str) -> Screen:
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
