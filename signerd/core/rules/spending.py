"""What counts as spent: the most that the signatures which left this machine can pay out together.

Of signed transactions that spend a same coin only one can confirm, so that a fee bump is not counted beside what it
replaces; which of them it will be is for the network to say, so that the largest counts. No chain is asked: that one of
them has confirmed would be the platform's word, which frees no limit, as it lifts no hold (ADR 12).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from multisig import OutPoint

# Of what spends from the person's own profile.
NO_QUORUM = ""


@dataclass(frozen=True)
class Spent:
    """A proposal that this machine signed, or whose device is being asked now.

    ``quorum``: the verification code of the vault that it spends from; None where an older journal did not tell.
    ``at``: when, by the largest time that the journal had seen. ``amount``: its payments in satoshis, without what
    comes back.
    """

    psbt_id: str
    quorum: str | None
    at: datetime
    amount: int
    outpoints: frozenset[OutPoint] = frozenset()


@dataclass(frozen=True)
class Moment:
    """The machine's clock, and the largest time in the journal: a clock set back (F) must not free a limit."""

    now: datetime
    latest: datetime

    @property
    def furthest(self) -> datetime:
        return max(self.now, self.latest)


def most_spent(within: timedelta, moment: Moment, spent: Sequence[Spent], this: Spent) -> int:
    """Satoshis that could leave with ``this`` within the period that ends at the moment.

    Something is in the window until exactly ``within`` after it was signed. What seems to lie in the future counts.
    """
    begin = moment.furthest - within
    others = (item for item in spent if item.psbt_id != this.psbt_id and item.at > begin)
    return worst_case([*others, this])


def worst_case(spent: Iterable[Spent]) -> int:
    """At least as much as those which can confirm together pay, and never more than all of them pay.

    Those that spend a same coin exclude each other: they form a group of which the largest counts. Which groups are
    formed where they overlap is a choice, and any choice is an upper bound.
    """
    left, total = list(spent), 0
    while left:
        group = max((_rivals(outpoint, left) for outpoint in left[0].outpoints), key=len, default=left[:1])
        total += max(item.amount for item in group)
        left = [item for item in left if item not in group]
    return total


def _rivals(outpoint: OutPoint, spent: Iterable[Spent]) -> list[Spent]:
    return [item for item in spent if outpoint in item.outpoints]
