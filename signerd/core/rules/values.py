"""Rules: a condition and an action, refuse or ask; and their sentences."""

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import ClassVar, Final, Self

from multisig import Network, Sats, encode_address
from signerd.core.text import amount

# A rolling window, so that the limit cannot be spent twice around midnight.
DAY: Final = timedelta(days=1)


class Action(StrEnum):
    """What happens to a proposal that meets the condition. No action allows one."""

    REFUSE = "refuse"
    ASK = "ask"


@dataclass(frozen=True)
class AbovePerTransaction:
    """The proposal's payments together are more than ``limit``."""

    kind: ClassVar[str] = "per-transaction"
    limit: Sats


@dataclass(frozen=True)
class AbovePerDay:
    """With this proposal, more than ``limit`` would be spent within ``DAY``."""

    kind: ClassVar[str] = "per-day"
    limit: Sats


@dataclass(frozen=True)
class ExceptTo:
    """A payment goes to another output script than these."""

    kind: ClassVar[str] = "address"
    scripts: frozenset[bytes]


@dataclass(frozen=True)
class OfToken:
    """It makes or calls a token, whose amounts no limit in bitcoin measures."""

    kind: ClassVar[str] = "token"


@dataclass(frozen=True)
class Always:
    """Every proposal meets it: "never" where it refuses, "always ask" where it asks."""

    kind: ClassVar[str] = "always"


Condition = AbovePerTransaction | AbovePerDay | ExceptTo | OfToken | Always


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

    def applies_to(self, code: str | None) -> bool:
        """``code``: of the quorum whose coins are spent; None for coins of no vault."""
        return self.vault is None or code in self.codes


@dataclass(frozen=True)
class Rules:
    """All rules of this machine, in the order in which they are shown."""

    rules: tuple[Rule, ...] = ()

    def of(self, code: str | None) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.rules if rule.applies_to(code))

    def sections(self) -> dict[str, frozenset[str]]:
        """The codes of each vault section, by its name in the file."""
        return {rule.vault: rule.codes for rule in self.rules if rule.vault is not None}

    def pinned(self, vault_id: str, code: str) -> Self:
        """The rules after a vault is pinned: a section named by an id applies to every quorum ever pinned
        under it.
        """
        return replace(self, rules=tuple(_also(rule, vault_id, code) for rule in self.rules))

    @property
    def depend_on_time(self) -> bool:
        """Whether their verdicts may change by time alone."""
        return any(isinstance(rule.condition, AbovePerDay) for rule in self.rules)


def _also(rule: Rule, vault_id: str, code: str) -> Rule:
    return replace(rule, codes=rule.codes | {code}) if rule.vault == vault_id else rule


NO_RULES = Rules()

KINDS = tuple(each.kind for each in (AbovePerTransaction, AbovePerDay, ExceptTo, OfToken, Always))


def rule_name(action: Action, kind: str, *, one_vault: bool) -> str:
    return f"rule-{'vault-' if one_vault else ''}{action}-{kind}"


RULE_NAMES = tuple(
    rule_name(action, kind, one_vault=one_vault)
    for one_vault in (False, True)
    for action in Action
    for kind in KINDS
)


def rule_words(rule: Rule, network: Network) -> str:
    """``refuse: more than 0.50000000 BTC (50,000,000 sats) within 24 hours, from the vault v-1``."""
    whose = "from all vaults together" if rule.vault is None else f"from the vault {rule.vault}"
    return f"{rule.action}: {_condition(rule, network)}, {whose}"


def _condition(rule: Rule, network: Network) -> str:
    match rule.condition:
        case AbovePerTransaction(limit):
            return f"more than {amount(limit)} in one transaction"
        case AbovePerDay(limit):
            return f"more than {amount(limit)} within 24 hours"
        case ExceptTo(scripts):
            listed = sorted(encode_address(script, network) or script.hex() for script in scripts)
            return f"a payment to anybody but {', '.join(listed)}"
        case OfToken():
            return "whatever makes or calls a token"
        case Always():
            return "every payment"
