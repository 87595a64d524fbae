"""Reads a send request: output scripts and amounts, OP_RETURN data, the fee rate."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from custody.schemas.coins import MaxSendQuery
from custody.schemas.proposals import CreatePsbtRequest
from custody.server.domain.errors import Dust, Invalid, WrongNetworkAddress
from custody.server.domain.fees import CEILING, FLOOR, STANDARD_PRIORITY
from custody.server.domain.intent import merge_amount, parse_op_return, parse_recipient
from custody.server.service.backends import Quote
from multisig import (
    MAX_MONEY,
    FeeRate,
    InvalidAddress,
    InvalidAmount,
    Network,
    Sats,
    TxOut,
    WrongNetwork,
    decode_address,
    dust_threshold,
    op_return_script,
)


@dataclass(frozen=True)
class Payment:
    """One recipient: the address as given, and its output."""

    address: str
    output: TxOut


@dataclass(frozen=True)
class Intent:
    """The outputs of a send. ``sweeps``: it sends everything to its single recipient; the coins decide the
    amount.
    """

    payments: tuple[Payment, ...] = ()
    op_return: bytes | None = None
    sweeps: bool = False

    @property
    def outputs(self) -> tuple[TxOut, ...]:
        """The payments in the given order, then the data."""
        data = () if self.op_return is None else (TxOut(Sats(0), op_return_script(self.op_return)),)
        return (*(payment.output for payment in self.payments), *data)

    @property
    def total(self) -> Sats:
        return Sats(sum(payment.output.amount for payment in self.payments))

    def of_everything(self, amount: Sats) -> "Intent":
        """The sweep with its amount. Raises Dust."""
        (payment,) = self.payments
        _require_no_dust(payment.output.script_pubkey, amount, "/recipients/0")
        return replace(self, payments=(replace(payment, output=replace(payment.output, amount=amount)),))


def read_intent(request: CreatePsbtRequest, network: Network, *, may_sweep: bool = False) -> Intent:
    """With ``may_sweep``, a single address without an amount is sent everything.


    Raises Invalid, WrongNetworkAddress (P28), Dust (P29).
    """
    if may_sweep and _names_no_amount(request):
        address = parse_recipient(request.recipients[0], "/recipients/0").address
        output = TxOut(Sats(0), _script(address, network, "/recipients/0"))
        return Intent((Payment(address, output),), _data(request), sweeps=True)
    payments = tuple(_payment(request, place, network) for place in range(len(request.recipients)))
    _require_distinct(payments)
    if sum(payment.output.amount for payment in payments) > MAX_MONEY:
        raise Invalid.at("/amounts_sats", "The amounts add up to more than 21 million bitcoin.")
    return Intent(payments, _data(request))


def read_recipients(addresses: Sequence[str], op_return: str | None, network: Network) -> Intent:
    """Recipients whose amounts are not known yet. Raises Invalid, WrongNetworkAddress."""
    payments = tuple(
        Payment(address, TxOut(Sats(0), _script(address, network, f"/recipients/{place}")))
        for place, address in enumerate(addresses)
    )
    _require_distinct(payments)
    return Intent(payments, None if op_return is None else parse_op_return(op_return))


def _require_distinct(payments: Sequence[Payment]) -> None:
    scripts = [payment.output.script_pubkey for payment in payments]
    for place, script in enumerate(scripts):
        if script in scripts[:place]:
            raise Invalid.at(
                f"/recipients/{place}", "The recipient is given twice: give it once, with the sum."
            )


def _names_no_amount(request: CreatePsbtRequest) -> bool:
    """False for a link, which may contain an amount."""
    if request.amounts_sats is not None or len(request.recipients) != 1:
        return False
    return not request.recipients[0].strip().lower().startswith("bitcoin:")


def _data(request: CreatePsbtRequest) -> bytes | None:
    return None if request.op_return is None else parse_op_return(request.op_return)


def _payment(request: CreatePsbtRequest, place: int, network: Network) -> Payment:
    pointer = f"/recipients/{place}"
    recipient = parse_recipient(request.recipients[place], pointer)
    given = None if request.amounts_sats is None else request.amounts_sats[place]
    amount = merge_amount(recipient, given, pointer)
    script = _script(recipient.address, network, pointer)
    _require_no_dust(script, amount, f"/amounts_sats/{place}")
    return Payment(recipient.address, TxOut(amount, script))


def _require_no_dust(script: bytes, amount: Sats, pointer: str) -> None:
    threshold = dust_threshold(script)
    if amount < threshold:
        sentence = f"{amount} sat is dust: this kind of address takes {threshold} sat at least."
        raise Dust.at(pointer, sentence, "dust")


def _script(address: str, network: Network, pointer: str) -> bytes:
    try:
        return decode_address(address, network)
    except WrongNetwork as error:
        raise WrongNetworkAddress.at(pointer, str(error), "wrong-network") from error
    except InvalidAddress as error:
        raise Invalid.at(pointer, str(error)) from error


def read_rate(request: CreatePsbtRequest | MaxSendQuery, quote: Quote) -> FeeRate:
    """The requested rate, or that of the priority. Raises Invalid below the floor and above the cap (P48)."""
    if request.fee_rate is None:
        return quote.rates[request.priority or STANDARD_PRIORITY]
    if request.priority is not None:
        raise Invalid.at("/fee_rate", "Give fee_rate or priority, not both.")
    try:
        rate = FeeRate.from_sat_per_vb(Decimal(request.fee_rate))
    except InvalidAmount as error:
        raise Invalid.at("/fee_rate", str(error)) from error
    if not FLOOR <= rate <= CEILING:
        raise Invalid.at("/fee_rate", f"The rate must be from {FLOOR} to {CEILING}.")
    return rate
