"""What a check may look at, and what it answers: allow, warn, hold or refuse, in a sentence with
its figures.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from custody.schemas.proposals import TxType
from multisig import Inspection, Payment, Policy, Psbt
from signerd.core.families import Figures, figures_of, read_figures
from signerd.core.signing import Signing
from signerd.core.values import Neighbour, Pin, ReviewContext, Snapshot, Unfollowed

Figure = str | int


class Outcome(StrEnum):
    ALLOW = "allow"
    WARN = "warn"
    REFUSE = "refuse"


@dataclass(frozen=True)
class Verdict:
    """What a review shows. ``name``: the check's, or the rule's.

    ``acknowledge``: a warning that the person must name when approving; until then it holds the proposal.
    """

    name: str
    outcome: Outcome
    sentence: str
    figures: Mapping[str, Figure] = field(default_factory=dict)
    acknowledge: bool = False


@dataclass(frozen=True)
class Answer:
    """What a check answers. Its row in the table has the name under which it is shown."""

    outcome: Outcome
    sentence: str
    figures: Mapping[str, Figure] = field(default_factory=dict)
    acknowledge: bool = False

    def under(self, name: str) -> Verdict:
        return Verdict(name, self.outcome, self.sentence, self.figures, self.acknowledge)


def allow(sentence: str, **figures: Figure) -> Answer:
    return Answer(Outcome.ALLOW, sentence, figures)


def warn(sentence: str, **figures: Figure) -> Answer:
    return Answer(Outcome.WARN, sentence, figures)


def hold(sentence: str, **figures: Figure) -> Answer:
    return Answer(Outcome.WARN, sentence, figures, acknowledge=True)


def refuse(sentence: str, **figures: Figure) -> Answer:
    return Answer(Outcome.REFUSE, sentence, figures)


@dataclass(frozen=True)
class Case:
    """One proposal and what this machine knows about its surroundings.

    ``not_compared``: of an imported PSBT, the names of the checks that would compare it with a record.
    """

    snapshot: Snapshot
    psbt: Psbt
    around: ReviewContext
    not_compared: tuple[str, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class InspectedCase(Case):
    """The same, with the pinned vault and what the PSBT's own bytes say against what its coins are of.

    ``signing``: None for a payment from the pinned vault; for a forward its profile. ``pin``: None where an
    imported PSBT spends from the profile.
    """

    pin: Pin | None
    inspection: Inspection
    signing: Signing | None = field(default=None)

    @property
    def is_forward(self) -> bool:
        """A move of the member's own money into the vault."""
        return self.snapshot.kind is TxType.FORWARD

    @property
    def policy(self) -> Policy:
        """What the coins are proven to be of."""
        if self.signing is not None:
            return self.signing.policy
        assert self.pin is not None, "what is not signed for a profile is signed for a pinned vault"
        return self.pin.vault

    @property
    def quorum(self) -> str | None:
        """The verification code of the vault that it is of; None for what spends from the profile alone."""
        return None if self.pin is None else self.pin.vault.verification_code

    @property
    def returning(self) -> tuple[tuple[bytes, int], ...]:
        """(script, satoshis) of every output that is proven to come back."""
        return tuple(
            (self.psbt.outputs[change.output_index].script_pubkey, int(change.amount))
            for change in self.inspection.change
        )

    @property
    def to_others(self) -> tuple[Payment, ...]:
        """What the vault pays. A forward pays the vault, which its own check proves; no limit counts that."""
        return () if self.is_forward else self.inspection.payments

    @property
    def paid(self) -> int:
        """Satoshis that the vault pays to others: no change, no fee."""
        return sum(int(payment.amount) for payment in self.to_others)

    @property
    def outgoing(self) -> frozenset[tuple[bytes, int]]:
        """(script, satoshis) of every payment to others."""
        return frozenset((p.script_pubkey, int(p.amount)) for p in self.inspection.payments)

    @cached_property
    def figures(self) -> Figures:
        """What of it counts where it takes another one's place."""
        return figures_of(self.inspection)

    def figures_of(self, other: Neighbour) -> Figures | None:
        """The same of another proposal, judged by what this one's coins are of. None where it cannot be."""
        return read_figures(other.psbt, self.policy)

    def shares_coins(self, other: Neighbour | Unfollowed) -> bool:
        return not self.figures.outpoints.isdisjoint(other.outpoints)

    def named(self) -> Neighbour | None:
        """The proposal that this one says it replaces, where it is known here."""
        return next((n for n in self.around.neighbours if n.psbt_id == self.snapshot.replaces), None)
