"""Rules: a condition and an action, refuse or ask; and their sentences."""

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Self
from zoneinfo import ZoneInfo

from multisig import FeeRate, Fingerprint, Network, Sats, encode_address
from signerd.core.text import amount

# As date.weekday() counts.
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])", re.ASCII)

# The end of a day, which no clock shows; ISO 8601 writes it so.
MIDNIGHT = "24:00"

MINUTES_A_DAY = 24 * 60


@dataclass(frozen=True)
class Hours:
    """From ``opens`` (included) to ``closes`` (excluded), both in minutes since midnight, on each of
    ``weekdays``.

    Local wall-clock time: an hour that summer time repeats counts twice, a skipped one never.
    """

    zone: ZoneInfo
    weekdays: frozenset[int]
    opens: int
    closes: int

    def contain(self, moment: datetime) -> bool:
        """``moment`` knows its own zone."""
        local = moment.astimezone(self.zone)
        minute = local.hour * 60 + local.minute
        return local.weekday() in self.weekdays and self.opens <= minute < self.closes

    def __str__(self) -> str:
        days = ", ".join(day for number, day in enumerate(WEEKDAYS) if number in self.weekdays)
        return f"{days} {clock_text(self.opens)} to {clock_text(self.closes)} {self.zone.key}"


def minute_of_day(text: str) -> int:
    """Minutes since midnight of "08:30". Raises ValueError."""
    match = _CLOCK.fullmatch(text)
    if text == MIDNIGHT:
        return MINUTES_A_DAY
    if match is None:
        raise ValueError(f'"{text}" is no time of day: write it like "08:30", at most "{MIDNIGHT}"')
    return int(match[1]) * 60 + int(match[2])


def clock_text(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"


class Action(StrEnum):
    """What happens to a proposal that meets the condition. No action allows one."""

    REFUSE = "refuse"
    ASK = "ask"


class Period(StrEnum):
    """A rolling window, so that the limit cannot be spent twice around midnight or Monday."""

    DAY = "day"
    WEEK = "week"

    @property
    def length(self) -> timedelta:
        return timedelta(days=7 if self is Period.WEEK else 1)

    @property
    def words(self) -> str:
        return "7 days" if self is Period.WEEK else "24 hours"


LONGEST_PERIOD = max(period.length for period in Period)


@dataclass(frozen=True)
class AbovePerTransaction:
    """The proposal's payments together are more than ``limit``."""

    limit: Sats


@dataclass(frozen=True)
class AboveWithin:
    """With this proposal, more than ``limit`` would be spent within the period."""

    period: Period
    limit: Sats


@dataclass(frozen=True)
class AboveFeeRate:
    limit: FeeRate


@dataclass(frozen=True)
class ExceptTo:
    """A payment goes to another output script than these."""

    scripts: frozenset[bytes]


@dataclass(frozen=True)
class ExceptWithin:
    """It is decided outside these hours."""

    hours: Hours


@dataclass(frozen=True)
class OfToken:
    """It makes or calls a token, whose amounts no limit in bitcoin measures."""


@dataclass(frozen=True)
class OffScreen:
    """It makes or calls a token, this signer's device does not show all of the data, and none of ``seen_by``
    has signed it.
    """

    seen_by: frozenset[Fingerprint] = frozenset()


@dataclass(frozen=True)
class Always:
    """Every proposal meets it: "never" where it refuses, "always ask" where it asks."""


Condition = (
    AbovePerTransaction | AboveWithin | AboveFeeRate | ExceptTo | ExceptWithin | OfToken | OffScreen | Always
)


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
        return rule_name(self.action, kind_of(self.condition), one_vault=self.vault is not None)

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
        return any(isinstance(rule.condition, AboveWithin | ExceptWithin) for rule in self.rules)


def _also(rule: Rule, vault_id: str, code: str) -> Rule:
    return replace(rule, codes=rule.codes | {code}) if rule.vault == vault_id else rule


NO_RULES = Rules()

KINDS = (
    "per-transaction",
    "per-day",
    "per-week",
    "fee-rate",
    "address",
    "hours",
    "token",
    "token-screen",
    "always",
)


def kind_of(condition: Condition) -> str:  # noqa: PLR0911 - one for each condition
    """One of ``KINDS``."""
    match condition:
        case AbovePerTransaction():
            return "per-transaction"
        case AboveWithin(period):
            return f"per-{period}"
        case AboveFeeRate():
            return "fee-rate"
        case ExceptTo():
            return "address"
        case ExceptWithin():
            return "hours"
        case OfToken():
            return "token"
        case OffScreen():
            return "token-screen"
        case Always():
            return "always"


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


def _condition(rule: Rule, network: Network) -> str:  # noqa: PLR0911 - one for each condition
    match rule.condition:
        case AbovePerTransaction(limit):
            return f"more than {amount(limit)} in one transaction"
        case AboveWithin(period, limit):
            return f"more than {amount(limit)} within {period.words}"
        case AboveFeeRate(limit):
            return f"a fee rate above {limit}"
        case ExceptTo(scripts):
            listed = sorted(encode_address(script, network) or script.hex() for script in scripts)
            return f"a payment to anybody but {', '.join(listed)}"
        case ExceptWithin(hours):
            return f"at any time but {hours}"
        case OfToken():
            return "whatever makes or calls a token"
        case OffScreen(seen_by):
            unless = f" and that {', '.join(sorted(map(str, seen_by)))} did not sign" if seen_by else ""
            return f"a token's data that this device does not show whole{unless}"
        case Always():
            return "every payment"
