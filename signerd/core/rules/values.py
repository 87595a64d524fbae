"""Rules: a condition and an action, refuse or ask; and their sentences."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Final, Self

from custody.common.text import amount
from multisig import Network, OutPoint, Sats, encode_address

# A rolling window, so that the limit cannot be spent twice around midnight.
DAY: Final = timedelta(days=1)
NO_SATS: Final = Sats(0)


class Action(StrEnum):
    """What happens to a proposal that meets the condition. No action allows one."""

    REFUSE = "refuse"
    ASK = "ask"


class RuleKind(StrEnum):
    """What of a proposal meets the rule.

    ``PER_TRANSACTION``: its payments together are more than the limit. ``PER_DAY``: with it, more than the
    limit would be spent within ``DAY``. ``ADDRESS``: a payment goes to another output script than these.
    ``TOKEN``: it makes or calls a token, whose amounts no limit in bitcoin measures. ``ALWAYS``: every
    proposal: "never" where it refuses, "always ask" where it asks.
    """

    PER_TRANSACTION = "per-transaction"
    PER_DAY = "per-day"
    ADDRESS = "address"
    TOKEN = "token"  # noqa: S105 - a token of value, not of access
    ALWAYS = "always"


@dataclass(frozen=True)
class Condition:
    """``limit``: in satoshis, of the first two kinds. ``scripts``: of ``ADDRESS``."""

    kind: RuleKind
    limit: Sats = NO_SATS
    scripts: frozenset[bytes] = frozenset()


@dataclass(frozen=True)
class Rule:
    """``vault``: as its section names it, for a person to read; None: for all vaults together.

    ``codes``: the verification codes of the quorums that it applies to; the platform's ids do not decide that
    (S26).
    """

    action: Action
    condition: Condition
    vault: str | None = None
    codes: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The verdict's stable name. Two rules share it where two sections name the same quorum."""
        return rule_name(self.action, self.condition.kind, one_vault=self.vault is not None)


@dataclass(frozen=True)
class Rules:
    """All rules of this machine, in the order in which they are shown."""

    rules: tuple[Rule, ...] = ()

    def of(self, code: str | None) -> tuple[Rule, ...]:
        """``code``: of the quorum whose coins are spent; None for coins of no vault."""
        return tuple(rule for rule in self.rules if rule.vault is None or code in rule.codes)

    def sections(self) -> dict[str, frozenset[str]]:
        """The codes of each vault section, by its name in the file."""
        return {rule.vault: rule.codes for rule in self.rules if rule.vault is not None}

    def pinned(self, vault_id: str, code: str) -> Self:
        """The rules after a vault is pinned: a section named by an id applies to every quorum ever pinned
        under it.
        """
        also = {
            rule: replace(rule, codes=rule.codes | {code}) for rule in self.rules if rule.vault == vault_id
        }
        return replace(self, rules=tuple(also.get(rule, rule) for rule in self.rules))

    @property
    def depend_on_time(self) -> bool:
        """Whether their verdicts may change by time alone."""
        return any(rule.condition.kind is RuleKind.PER_DAY for rule in self.rules)


NO_RULES = Rules()


def rule_name(action: Action, kind: RuleKind, *, one_vault: bool) -> str:
    return f"rule-{'vault-' if one_vault else ''}{action}-{kind}"


RULE_NAMES = tuple(
    rule_name(action, kind, one_vault=one_vault)
    for one_vault in (False, True)
    for action in Action
    for kind in RuleKind
)


def rule_words(rule: Rule, network: Network) -> str:
    """``refuse: more than 0.50000000 BTC (50,000,000 sats) within 24 hours, from the vault v-1``."""
    whose = "from all vaults together" if rule.vault is None else f"from the vault {rule.vault}"
    limit, scripts = amount(rule.condition.limit), rule.condition.scripts
    listed = ", ".join(sorted(encode_address(script, network) or script.hex() for script in scripts))
    what = {
        RuleKind.PER_TRANSACTION: f"more than {limit} in one transaction",
        RuleKind.PER_DAY: f"more than {limit} within 24 hours",
        RuleKind.ADDRESS: f"a payment to anybody but {listed}",
        RuleKind.TOKEN: "whatever makes or calls a token",
        RuleKind.ALWAYS: "every payment",
    }[rule.condition.kind]
    return f"{rule.action}: {what}, {whose}"


# The quorum of a spend from the person's own profile.
NO_QUORUM = ""


@dataclass(frozen=True)
class Spent:
    """A proposal that this machine signed or exported, or whose device is being asked now.

    ``quorum``: the verification code of the vault that it spends from; None where that could not be read.
    ``amount``: its payments in satoshis, without change.
    """

    psbt_id: str
    quorum: str | None
    amount: int
    outpoints: frozenset[OutPoint] = frozenset()


def worst_case(spent: Iterable[Spent]) -> int:
    """What counts as spent: an upper bound of what can confirm together, and at most the sum of all. The
    platform's claim that one has confirmed frees no limit (ADR 12).

    Spends of the same coin, as a fee bump and what it replaces, exclude each other: the largest of such a
    group counts. Overlapping groups can be formed in different ways; each gives an upper bound.
    """
    left, total = list(spent), 0
    while left:
        rivals = ([item for item in left if outpoint in item.outpoints] for outpoint in left[0].outpoints)
        group = max(rivals, key=len, default=left[:1])
        total += max(item.amount for item in group)
        left = [item for item in left if item not in group]
    return total
