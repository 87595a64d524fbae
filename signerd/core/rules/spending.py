"""What counts as spent: the most that the signatures made on this machine can pay out together.

Of signed transactions that spend the same coin only one can confirm: of a fee bump and what it replaces only
the larger payment counts. The platform's claim that one has confirmed does not free a limit (ADR 12).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from multisig import OutPoint

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
    """An upper bound of what can confirm together, and at most the sum of all.

    Spends of the same coin exclude each other: the largest of such a group counts. Overlapping groups can be
    formed in different ways; each gives an upper bound.
    """
    left, total = list(spent), 0
    while left:
        rivals = ([item for item in left if outpoint in item.outpoints] for outpoint in left[0].outpoints)
        group = max(rivals, key=len, default=left[:1])
        total += max(item.amount for item in group)
        left = [item for item in left if item not in group]
    return total
