"""The verdicts of the person's rules on an inspected proposal."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from multisig import FeeRate
from signerd.core.checks.case import Figure, InspectedCase, Verdict, allow, hold, refuse
from signerd.core.checks.tokens import gaining
from signerd.core.families import payee
from signerd.core.rules.spending import NO_QUORUM, Spent, most_spent
from signerd.core.rules.values import (
    AboveFeeRate,
    AbovePerTransaction,
    AboveWithin,
    Action,
    Always,
    ExceptTo,
    ExceptWithin,
    OffScreen,
    OfToken,
    Rule,
)
from signerd.core.text import amount
from signerd.core.tokens import hidden_parts

# Whether the condition is met, the sentence for it, and the figures.
Found = tuple[bool, str, Mapping[str, Figure]]
_AGAINST = {Action.REFUSE: "your rules refuse it", Action.ASK: "your rules ask you first"}


def judge(case: InspectedCase) -> tuple[Verdict, ...]:
    """In the order of the rules. Sentences contain no time, so that an approval stays valid while only time
    passes.
    """
    return tuple(_verdict(rule, case) for rule in case.context.rules.of(case.quorum))


def _verdict(rule: Rule, case: InspectedCase) -> Verdict:
    met, sentence, figures = _CONDITIONS[type(rule.condition)](rule, case)
    if not met:
        return allow(f"{sentence}.", **figures).under(rule.name)
    say = refuse if rule.action is Action.REFUSE else hold
    return say(f"{sentence}: {_AGAINST[rule.action]}.", **figures).under(rule.name)


def _per_transaction(rule: Rule, case: InspectedCase) -> Found:
    assert isinstance(rule.condition, AbovePerTransaction)
    paid, most = case.paid, rule.condition.limit
    figures = {"paid_sats": paid, "limit_sats": int(most)}
    if paid > most:
        return True, f"It pays {amount(paid)}, more than {amount(most)} in one transaction", figures
    return False, f"It pays no more than {amount(most)}", figures


def _within(rule: Rule, case: InspectedCase) -> Found:
    assert isinstance(rule.condition, AboveWithin)
    period, most, context = rule.condition.period, rule.condition.limit, case.context
    if context.moment is None:
        return True, f"The time is not known, so that what was spent in {period.words} is not", {}
    # What was signed for an unknown quorum counts for each vault.
    spent = [item for item in context.spent if rule.vault is None or item.quorum in {None, case.quorum}]
    this = Spent(
        case.snapshot.psbt_id,
        case.quorum or NO_QUORUM,
        context.moment.furthest,
        case.paid,
        frozenset(inspected.outpoint for inspected in case.inspection.inputs),
    )
    total = most_spent(period.length, context.moment, spent, this)
    figures = {"with_this_sats": total, "paid_sats": case.paid, "limit_sats": int(most)}
    whose = "all vaults" if rule.vault is None else "this vault"
    if total > most:
        sentence = (
            f"With it {amount(total)} would be paid from {whose} within {period.words}, more than "
            f"{amount(most)}"
        )
        return True, sentence, figures
    return False, f"With it no more than {amount(most)} are paid from {whose} within {period.words}", figures


def _fee_rate(rule: Rule, case: InspectedCase) -> Found:
    assert isinstance(rule.condition, AboveFeeRate)
    fee, rate, most = case.fee, case.inspection.fee_rate, rule.condition.limit
    if fee is None or rate is None:
        return True, "No fee is proven", {}
    figures = {"sat_per_kvb": rate.sat_per_kvb, "limit_sat_per_kvb": most.sat_per_kvb}
    # The inspection's rate is rounded down, so the fee itself is compared.
    if fee * 1000 > most.sat_per_kvb * case.inspection.vsize:
        return True, f"The fee rate is above {_rate(most)}", figures
    return False, f"The fee rate is not above {_rate(most)}", figures


def _rate(rate: FeeRate) -> str:
    return f"{rate.sat_per_vb.normalize():f} sat/vB"


def _address(rule: Rule, case: InspectedCase) -> Found:
    assert isinstance(rule.condition, ExceptTo)
    others = [p.script_pubkey for p in case.to_others if p.script_pubkey not in rule.condition.scripts]
    if others:
        named = ", ".join(payee(script, case.context.network) for script in others)
        return True, f"It pays somebody who is not on your list ({named})", {"others": len(others)}
    holder = gaining(case)
    if holder is not None and holder not in rule.condition.scripts:
        named = payee(holder, case.context.network)
        return True, f"It gives tokens to somebody who is not on your list ({named})", {"others": 1}
    return False, "It pays nobody who is not on your list", {"others": 0}


def _hours(rule: Rule, case: InspectedCase) -> Found:
    assert isinstance(rule.condition, ExceptWithin)
    hours, moment = rule.condition.hours, case.context.moment
    if moment is None:
        return True, "The time is not known", {}
    local = moment.now.astimezone(hours.zone)
    figures = {"local_time": f"{local:%Y-%m-%d %H:%M}", "zone": hours.zone.key}
    if hours.contain(moment.now):
        return False, f"It is within your hours ({hours})", figures
    return True, f"It is outside your hours ({hours})", figures


def _token(_rule: Rule, case: InspectedCase) -> Found:
    if case.inspection.token_output is not None:
        return True, "It makes or calls a token", {}
    return False, "It has nothing to do with a token", {}


def _off_screen(rule: Rule, case: InspectedCase) -> Found:
    """Another device has shown all data if every input has a valid signature of its key."""
    assert isinstance(rule.condition, OffScreen)
    output = case.inspection.token_output
    if output is None or output.token is None:
        return False, "It has nothing to do with a token", {}
    if not hidden_parts(output.token, case.context.screen):
        return False, "Your device shows all of the token's data", {}
    signed = frozenset.intersection(*(frozenset(coin.signed_by) for coin in case.inspection.inputs))
    seen = sorted(map(str, signed & rule.condition.seen_by))
    if seen:
        return False, f"Your device does not show all of the token's data, and {seen[0]} has signed it", {}
    return True, "Your device does not show all of the token's data", {}


def _always(rule: Rule, _case: InspectedCase) -> Found:
    return True, "Every payment of this vault" if rule.vault is not None else "Every payment", {}


_CONDITIONS: Mapping[type, Callable[[Rule, InspectedCase], tuple[bool, str, Mapping[str, Any]]]] = (
    MappingProxyType(
        {
            AbovePerTransaction: _per_transaction,
            AboveWithin: _within,
            AboveFeeRate: _fee_rate,
            ExceptTo: _address,
            ExceptWithin: _hours,
            OfToken: _token,
            OffScreen: _off_screen,
            Always: _always,
        }
    )
)
