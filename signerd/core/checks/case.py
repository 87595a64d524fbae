"""The input of a check, and its answer: allow, warn, hold or refuse, with a sentence and its figures."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from custody.schemas.proposals import TxType
from multisig import Inspection, Payment, Policy, Psbt, Sats
from signerd.core.families import FamilyFigures, figures_of, read_figures
from signerd.core.values import Neighbour, ReviewContext, Snapshot, Unfollowed

Figure = str | int


class Outcome(StrEnum):
    ALLOW = "allow"
    WARN = "warn"
    REFUSE = "refuse"


@dataclass(frozen=True)
class Verdict:
    """``name``: the check's, which its row in the table gives it, or the rule's.

    ``acknowledge``: a warning that the person must name to approve.
    """

    outcome: Outcome
    sentence: str
    figures: Mapping[str, Figure] = field(default_factory=dict)
    acknowledge: bool = False
    name: str = ""

    def under(self, name: str) -> "Verdict":
        return replace(self, name=name)


def allow(sentence: str, **figures: Figure) -> Verdict:
    return Verdict(Outcome.ALLOW, sentence, figures)


def warn(sentence: str, **figures: Figure) -> Verdict:
    return Verdict(Outcome.WARN, sentence, figures)


def hold(sentence: str, **figures: Figure) -> Verdict:
    return Verdict(Outcome.WARN, sentence, figures, acknowledge=True)


def refuse(sentence: str, **figures: Figure) -> Verdict:
    return Verdict(Outcome.REFUSE, sentence, figures)


# S32: a check that needs the fee is not passed where there is none, or where it is not proven.
NO_FEE = refuse("It cannot be checked, because no fee is proven.")


@dataclass(frozen=True)
class Case:
    """A proposal, and what this machine knows about it.

    ``not_compared``: for an imported PSBT, the names of the checks that compare with a record.
    """

    snapshot: Snapshot
    psbt: Psbt
    context: ReviewContext
    not_compared: tuple[str, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class InspectedCase(Case):
    """With the inspection of the PSBT, by ``policy``: whose coins it spends."""

    inspection: Inspection
    policy: Policy

    @property
    def is_forward(self) -> bool:
        """A move of the member's own money into the vault."""
        return self.snapshot.kind is TxType.FORWARD

    @property
    def quorum(self) -> str | None:
        """The vault's verification code; None where it spends from the profile only."""
        pin = self.context.pin
        return None if pin is None else pin.vault.verification_code

    @property
    def fee(self) -> Sats | None:
        """None where it is not proven, or the outputs are more than the coins hold."""
        fee = self.inspection.fee
        return None if fee is None or fee < 0 else fee

    @property
    def returning(self) -> tuple[tuple[bytes, int], ...]:
        """(script, satoshis) of every proven change output."""
        return tuple(
            (self.psbt.outputs[change.output_index].script_pubkey, int(change.amount))
            for change in self.inspection.change
        )

    @property
    def to_others(self) -> tuple[Payment, ...]:
        """The vault's payments. A forward pays the vault, which no limit counts; another check proves it."""
        return () if self.is_forward else self.inspection.payments

    @property
    def paid(self) -> int:
        """Satoshis paid to others, without change and fee."""
        return sum(int(payment.amount) for payment in self.to_others)

    @property
    def outgoing(self) -> frozenset[tuple[bytes, int]]:
        """(script, satoshis) of every payment to others."""
        return frozenset((p.script_pubkey, int(p.amount)) for p in self.inspection.payments)

    @cached_property
    def figures(self) -> FamilyFigures | None:
        """The figures that are compared where it replaces another proposal; None where the fee is not
        known.
        """
        return figures_of(self.inspection)

    @property
    def takes_all_back(self) -> bool:
        """A cancel: every output is proven ours."""
        return not self.inspection.payments and not self.inspection.op_returns

    def figures_of(self, other: Neighbour) -> FamilyFigures | None:
        """The figures of another proposal of the same policy; None where they cannot be read."""
        return read_figures(other.psbt, self.policy)

    def shares_coins(self, other: Neighbour | Unfollowed) -> bool:
        return any(spent.outpoint in other.outpoints for spent in self.inspection.inputs)

    def named(self) -> Neighbour | None:
        """The proposal that this one claims to replace, if it is known here."""
        return next((n for n in self.context.neighbours if n.psbt_id == self.snapshot.replaces), None)
