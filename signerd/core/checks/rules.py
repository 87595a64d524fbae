"""The verdicts of the person's rules on an inspected proposal."""

from collections.abc import Mapping

from custody.common.text import amount
from signerd.core.checks.case import Figure, InspectedCase, Verdict, allow, hold, refuse
from signerd.core.checks.tokens import gaining
from signerd.core.families import payee
from signerd.core.rules.values import NO_QUORUM, Action, Rule, RuleKind, Spent, worst_case

# Whether the condition is met, the sentence for it, and the figures.
Found = tuple[bool, str, Mapping[str, Figure]]
_AGAINST = {Action.REFUSE: "your rules refuse it", Action.ASK: "your rules ask you first"}


def judge(case: InspectedCase) -> tuple[Verdict, ...]:
    """In the order of the rules. Sentences contain no time, so that an approval stays valid while only time
    passes.
    """
    return tuple(_verdict(rule, case) for rule in case.context.rules.of(case.quorum))


def _verdict(rule: Rule, case: InspectedCase) -> Verdict:
    met, sentence, figures = _met(rule, case)
    if not met:
        return allow(f"{sentence}.", **figures).under(rule.name)
    say = refuse if rule.action is Action.REFUSE else hold
    return say(f"{sentence}: {_AGAINST[rule.action]}.", **figures).under(rule.name)


def _met(rule: Rule, case: InspectedCase) -> Found:
    match rule.condition.kind:
        case RuleKind.PER_TRANSACTION:
            paid, most = case.paid, rule.condition.limit
            figures = {"paid_sats": paid, "limit_sats": int(most)}
            if paid > most:
                return True, f"It pays {amount(paid)}, more than {amount(most)} in one transaction", figures
            return False, f"It pays no more than {amount(most)}", figures
        case RuleKind.PER_DAY:
            return _per_day(rule, case)
        case RuleKind.ADDRESS:
            return _address(rule, case)
        case RuleKind.TOKEN:
            met = case.inspection.token_output is not None
            return met, "It makes or calls a token" if met else "It has nothing to do with a token", {}
        case RuleKind.ALWAYS:
            return True, "Every payment of this vault" if rule.vault is not None else "Every payment", {}


def _per_day(rule: Rule, case: InspectedCase) -> Found:
    most, context = rule.condition.limit, case.context
    if context.moment is None:
        return True, "The time is not known, so that what was spent in 24 hours is not", {}
    # What was signed for an unknown quorum counts for each vault.
    others = [
        item
        for item in context.spent
        if item.psbt_id != case.snapshot.psbt_id
        and (rule.vault is None or item.quorum in {None, case.quorum})
    ]
    this = Spent(
        case.snapshot.psbt_id,
        case.quorum or NO_QUORUM,
        case.paid,
        frozenset(inspected.outpoint for inspected in case.inspection.inputs),
    )
    total = worst_case([*others, this])
    figures = {"with_this_sats": total, "paid_sats": case.paid, "limit_sats": int(most)}
    whose = "all vaults" if rule.vault is None else "this vault"
    if total > most:
        sentence = (
            f"With it {amount(total)} would be paid from {whose} within 24 hours, more than {amount(most)}"
        )
        return True, sentence, figures
    return False, f"With it no more than {amount(most)} are paid from {whose} within 24 hours", figures


def _address(rule: Rule, case: InspectedCase) -> Found:
    others = [p.script_pubkey for p in case.to_others if p.script_pubkey not in rule.condition.scripts]
    if others:
        named = ", ".join(payee(script, case.context.network) for script in others)
        return True, f"It pays somebody who is not on your list ({named})", {"others": len(others)}
    holder = gaining(case)
    if holder is not None and holder not in rule.condition.scripts:
        named = payee(holder, case.context.network)
        return True, f"It gives tokens to somebody who is not on your list ({named})", {"others": 1}
    return False, "It pays nobody who is not on your list", {"others": 0}
