"""What a rule is: a condition, and whether what meets it is refused or asked about. Frozen, without anything to do."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from multisig import FeeRate, Fingerprint, Sats
from signerd.core.rules.hours import Hours


class Action(StrEnum):
    """What happens to a proposal that meets the condition. There is no action that lets one pass."""

    REFUSE = "refuse"
    ASK = "ask"


class Period(StrEnum):
    """A rolling window: no midnight and no Monday to wait for, so that nothing is spent twice around one."""

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
    """It makes or calls a token, this signer's device does not show all of the data, and none of ``seen_by`` has signed it."""

    seen_by: frozenset[Fingerprint] = frozenset()


@dataclass(frozen=True)
class Always:
    """Every proposal meets it: "never" where it refuses, "always ask" where it asks."""


Condition = (
    AbovePerTransaction | AboveWithin | AboveFeeRate | ExceptTo | ExceptWithin | OfToken | OffScreen | Always
)


@dataclass(frozen=True)
class Rule:
    """``vault_id`` None: for all vaults together."""

    action: Action
    condition: Condition
    vault_id: str | None = None

    @property
    def name(self) -> str:
        """The verdict's stable name. No two rules that bear on one proposal share one: a person names what they read."""
        return rule_name(self.action, kind_of(self.condition), one_vault=self.vault_id is not None)


@dataclass(frozen=True)
class Rules:
    """All rules of this machine, in the order in which they are shown."""

    rules: tuple[Rule, ...] = ()

    def of(self, vault_id: str) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.rules if rule.vault_id in {None, vault_id})

    @property
    def vault_ids(self) -> frozenset[str]:
        return frozenset(rule.vault_id for rule in self.rules if rule.vault_id is not None)

    @property
    def hang_on_time(self) -> bool:
        """What they say of a proposal may change though nothing happens."""
        return any(isinstance(rule.condition, AboveWithin | ExceptWithin) for rule in self.rules)


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
