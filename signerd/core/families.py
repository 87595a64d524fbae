"""Replacements: the figures that are compared, and the differences of two transactions (S6, S11).

A family is a transaction, its fee bumps, and theirs. No list of its members is kept: it would rest on claims
of the proposals. Pairs of transactions are compared by their proven figures. Only two that share a coin
exclude each other, whatever they both replace.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from custody.common.text import amount
from multisig import (
    FeeLimits,
    FeeRate,
    Inspection,
    MultisigError,
    Network,
    OutPoint,
    Policy,
    Psbt,
    encode_address,
    inspect,
)

Payments = Counter[tuple[bytes, int]]
# BIP-125, rule 4: a replacement also pays for its own relay, at most this rate (Bitcoin Core before 30).
INCREMENTAL_RELAY = FeeRate(1_000)


@dataclass(frozen=True)
class FamilyFigures:
    """``payments``: counts of the outputs that are not proven change. ``change`` and ``fee`` in satoshis."""

    outpoints: frozenset[OutPoint]
    payments: Payments
    data: tuple[bytes, ...]
    change: int
    fee: int
    vsize: int
    rate: FeeRate

    @property
    def takes_all_back(self) -> bool:
        """A cancel: every output is proven ours."""
        return not self.payments and not self.data


def figures_of(inspection: Inspection) -> FamilyFigures | None:
    """None where the fee is not known."""
    if inspection.fee is None or inspection.fee_rate is None:
        return None
    return FamilyFigures(
        outpoints=frozenset(spent.outpoint for spent in inspection.inputs),
        payments=Counter((paid.script_pubkey, int(paid.amount)) for paid in inspection.payments),
        data=tuple(output.data for output in inspection.op_returns),
        change=sum(int(back.amount) for back in inspection.change),
        fee=int(inspection.fee),
        vsize=inspection.vsize,
        rate=inspection.fee_rate,
    )


def read_figures(psbt: bytes, policy: Policy) -> FamilyFigures | None:
    """None where the PSBT is malformed, or a coin is not proven to be the policy's: the fee is then
    unknown.
    """
    try:
        inspection = inspect(Psbt.parse(psbt), policy, network=policy.network, limits=FeeLimits())
    except MultisigError:
        return None
    proven = all(spent.chain is not None for spent in inspection.inputs)
    return figures_of(inspection) if proven else None


def outbids(second: FamilyFigures, first: FamilyFigures) -> bool:
    """Whether ``second`` may replace ``first`` by BIP-125, rules 3 and 4."""
    return (
        second.fee * 1000 >= first.fee * 1000 + second.vsize * INCREMENTAL_RELAY.sat_per_kvb
        and _rate_rises(first, second)
    )


def differences(first: FamilyFigures, second: FamilyFigures, network: Network) -> tuple[str, ...]:
    """Sentences for what the second does beyond raising the fee; none for a fee bump that is paid from the
    change, or from the payment (`pays_less`).
    """
    payments = () if pays_less(first, second) else _of_payments(first, second, network)
    return (*payments, *_of_coins(first, second), *_of_fee(first, second))


def pays_less(first: FamilyFigures, second: FamilyFigures) -> bool:
    """Whether both send the same coins whole to one payee, and the second's fee comes out of the amount."""
    return (
        first.outpoints == second.outpoints
        and first.data == second.data
        and first.change == second.change == 0
        and first.payments.total() == second.payments.total() == 1
        and {script for script, _ in first.payments} == {script for script, _ in second.payments}
        and second.fee > first.fee
    )


def _of_payments(first: FamilyFigures, second: FamilyFigures, network: Network) -> Iterator[str]:
    was, now = first.payments - second.payments, second.payments - first.payments
    for script in dict.fromkeys(script for script, _sats in (*was, *now)):
        before, after, to = _sum(was, script), _sum(now, script), payee(script, network)
        if before == after:
            yield f"It pays {to} in other parts."
        elif before and after:
            yield f"It pays {amount(after)} to {to} where the first pays {amount(before)}."
        elif after:
            yield f"It pays {amount(after)} to {to}, which the first does not."
        else:
            yield f"It does not pay the first's {amount(before)} to {to}."
    if first.data != second.data:
        yield "It carries other data than the first."


def _sum(payments: Payments, script: bytes) -> int:
    return sum(sats * count for (paid, sats), count in payments.items() if paid == script)


def _of_coins(first: FamilyFigures, second: FamilyFigures) -> Iterator[str]:
    if not first.outpoints & second.outpoints:
        yield "It spends no coin of the first, so that both could confirm."
    elif not first.outpoints <= second.outpoints:
        yield "It leaves a coin of the first out."


def _of_fee(first: FamilyFigures, second: FamilyFigures) -> Iterator[str]:
    if second.fee <= first.fee:
        yield f"Its fee of {amount(second.fee)} is not above the first's of {amount(first.fee)}."
    elif not _rate_rises(first, second):
        yield f"Its fee rate of {rate_text(second)} is not above the first's of {rate_text(first)}."


def _rate_rises(first: FamilyFigures, second: FamilyFigures) -> bool:
    return second.fee * first.vsize > first.fee * second.vsize


def rate_text(figures: FamilyFigures) -> str:
    return f"{figures.rate.sat_per_vb} sat/vB"


def payee(script: bytes, network: Network) -> str:
    return encode_address(script, network) or f"script {script.hex()}"
