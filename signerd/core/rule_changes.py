"""What other rules or limits would change: what becomes of past proposals under them, and what they no longer
stop or ask about.

A past proposal is replayed at the time of its decision. One that the rules refuse counts as not signed in
later windows. Where they ask, the person's decision stays.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from multisig import Network, format_btc
from signerd.core.audit import Entry
from signerd.core.checks.case import InspectedCase, Outcome, Verdict
from signerd.core.checks.rules import judge
from signerd.core.rules.spending import AskedSpend, Ledger, Moment, Spent
from signerd.core.rules.values import (
    AboveFeeRate,
    AbovePerTransaction,
    AboveWithin,
    Action,
    Rule,
    Rules,
    rule_words,
)
from signerd.core.values import Limits


class Decision(StrEnum):
    """The outcome of a proposal here."""

    SIGNED = "signed"
    APPROVED = "approved"
    DECLINED = "declined"
    REFUSED = "refused-by-a-check"
    OPEN = "not-decided"


class Answer(StrEnum):
    """The result under the replayed rules."""

    PASS = "pass"  # noqa: S105 - no password
    ASK = "ask"
    REFUSE = "refuse"
    UNKNOWN = "not-judged"


@dataclass(frozen=True)
class Decided:
    """The chain's entry of the decision; for a signed proposal, that of asking the device or of the
    export.
    """

    psbt_id: str
    sequence: int
    at: datetime
    decision: Decision


@dataclass(frozen=True)
class Replayed:
    """``paid``: satoshis to others, None where the proposal cannot be reviewed. ``verdicts``: of every
    rule.
    """

    decided: Decided
    vault_id: str
    paid: int | None
    verdicts: tuple[Verdict, ...]

    @property
    def answer(self) -> Answer:
        if self.paid is None:
            return Answer.UNKNOWN
        outcomes = {verdict.outcome for verdict in self.verdicts}
        if Outcome.REFUSE in outcomes:
            return Answer.REFUSE
        return Answer.ASK if Outcome.WARN in outcomes else Answer.PASS


def decisions(entries: Iterable[Entry]) -> tuple[Decided, ...]:
    """One for each proposal, in the order in which they were decided."""
    found: dict[str, Decided] = {}
    for entry in entries:
        known = found.get(entry.note.subject)
        if known is None or known.decision not in {Decision.SIGNED, Decision.DECLINED}:
            decided = _decided(entry, known)
            if decided is not None:
                found[entry.note.subject] = decided
    return tuple(sorted(found.values(), key=lambda decided: decided.sequence))


def _decided(entry: Entry, known: Decided | None) -> Decided | None:
    note = entry.note
    match note.kind:
        case "signed" if known is not None:
            return replace(known, decision=Decision.SIGNED)
        case "approved" | "device-asked" | "exported":
            decision = Decision.APPROVED
        case "declined":
            decision = Decision.DECLINED
        case "judged":
            decision = Decision.REFUSED if note.facts["refusals"] else Decision.OPEN
        case "received":
            decision = Decision.OPEN
        case _:
            return None
    return Decided(note.subject, entry.sequence, datetime.fromisoformat(entry.at), decision)


def replay(
    entries: Sequence[Entry],
    cases: Mapping[str, InspectedCase],
    vaults: Mapping[str, str],
    quorums: Mapping[str, str | None],
    rules: Rules,
) -> tuple[Replayed, ...]:
    """``entries``: the whole chain. By proposal: ``cases``, what can be judged; ``vaults``, what the platform
    called the vault of each; ``quorums``, its verification code.
    """
    ledger, taken, stopped, lines = Ledger(), 0, set[str](), []
    for decided in decisions(entries):
        # Only earlier entries were known at the decision.
        ledger.take(entries[taken : decided.sequence - 1])
        taken = decided.sequence - 1
        signed = (item for item in ledger.asked() if item.psbt_id not in stopped)
        spent = tuple(_spent(item, cases, quorums) for item in signed)
        line = _replayed(decided, cases.get(decided.psbt_id), vaults, rules, spent, ledger.latest)
        if line.answer is Answer.REFUSE:
            stopped.add(decided.psbt_id)
        lines.append(line)
    return tuple(lines)


def _replayed(
    decided: Decided,
    case: InspectedCase | None,
    vaults: Mapping[str, str],
    rules: Rules,
    spent: tuple[Spent, ...],
    latest: datetime,
) -> Replayed:
    vault_id = vaults.get(decided.psbt_id, "")
    if case is None:
        return Replayed(decided, vault_id, None, ())
    context = replace(case.context, rules=rules, spent=spent, moment=Moment(decided.at, latest))
    return Replayed(decided, vault_id, case.paid, judge(replace(case, context=context)))


def _spent(item: AskedSpend, cases: Mapping[str, InspectedCase], quorums: Mapping[str, str | None]) -> Spent:
    case = cases.get(item.psbt_id)
    coins = () if case is None else (inspected.outpoint for inspected in case.inspection.inputs)
    return Spent(item.psbt_id, quorums.get(item.psbt_id), item.at, item.amount, frozenset(coins))


def looser_rules(old: Rules, new: Rules, network: Network) -> tuple[str, ...]:
    """A sentence for each old rule that no new rule covers."""
    gone = (rule for rule in old.rules if not any(_covers(other, rule) for other in new.rules))
    return tuple(f"It holds no more as it did: {rule_words(rule, network)}." for rule in gone)


def _covers(new: Rule, old: Rule) -> bool:
    same_reach = new.vault is None or (old.vault is not None and old.codes <= new.codes)
    at_least = new.action is Action.REFUSE or old.action is Action.ASK
    return same_reach and at_least and _stops_as_much(new, old)


def _stops_as_much(new: Rule, old: Rule) -> bool:
    match new.condition, old.condition:
        case (AbovePerTransaction(now), AbovePerTransaction(before)):
            return now <= before
        case (AboveWithin(period, now), AboveWithin(same, before)) if period is same:
            # One vault alone spends at most what all spend together.
            return now <= before
        case (AboveFeeRate(now), AboveFeeRate(before)):
            return now <= before
        case _:
            return new.condition == old.condition


def looser_limits(old: Limits, new: Limits) -> Iterator[str]:
    if new.max_fee > old.max_fee:
        yield f"The largest fee goes up from {format_btc(old.max_fee)} to {format_btc(new.max_fee)} BTC."
    if new.max_fee_rate > old.max_fee_rate:
        yield f"The highest fee rate goes up from {old.max_fee_rate} to {new.max_fee_rate}."
    if new.max_fee_percent > old.max_fee_percent:
        yield f"The largest share of a fee goes up from {old.max_fee_percent} % to {new.max_fee_percent} %."
    if new.warn_fee_percent > old.warn_fee_percent:
        yield f"You are warned above {new.warn_fee_percent} %, no longer above {old.warn_fee_percent} %."
