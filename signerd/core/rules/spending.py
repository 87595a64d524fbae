"""What counts as spent: the most that the signatures made on this machine can pay out together.

Of signed transactions that spend the same coin only one can confirm: of a fee bump and what it replaces only
the larger payment counts. The platform's claim that one has confirmed does not free a limit (ADR 12).

The ledger reads this from the journal's audit chain.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from multisig import OutPoint
from signerd.core.audit import Entry
from signerd.core.rules.values import DAY

# The quorum of a spend from the person's own profile.
NO_QUORUM = ""


@dataclass(frozen=True)
class Spent:
    """A proposal that this machine signed or exported, or whose device is being asked now.

    ``quorum``: the verification code of the vault that it spends from; None where that could not be read.
    ``at``: the latest time that the journal had seen. ``amount``: its payments in satoshis, without
    change.
    """

    psbt_id: str
    quorum: str | None
    at: datetime
    amount: int
    outpoints: frozenset[OutPoint] = frozenset()


@dataclass(frozen=True)
class Moment:
    """The machine's clock, and the latest time in the journal: a clock that is set back must not free a
    limit.
    """

    now: datetime
    latest: datetime

    @property
    def furthest(self) -> datetime:
        return max(self.now, self.latest)


def most_spent(moment: Moment, spent: Sequence[Spent], this: Spent) -> int:
    """Satoshis that could leave with ``this`` within the ``DAY`` that ends at the moment.

    A spend is in the window until exactly a ``DAY`` after it was signed. A time in the future counts.
    """
    begin = moment.furthest - DAY
    others = (item for item in spent if item.psbt_id != this.psbt_id and item.at > begin)
    return worst_case([*others, this])


def worst_case(spent: Iterable[Spent]) -> int:
    """An upper bound of what can confirm together, and at most the sum of all.

    Spends of the same coin exclude each other: the largest of such a group counts. Overlapping groups can be
    formed in different ways; each gives an upper bound.
    """
    left, total = list(spent), 0
    while left:
        group = max((_rivals(outpoint, left) for outpoint in left[0].outpoints), key=len, default=left[:1])
        total += max(item.amount for item in group)
        left = [item for item in left if item not in group]
    return total


def _rivals(outpoint: OutPoint, spent: Iterable[Spent]) -> list[Spent]:
    return [item for item in spent if outpoint in item.outpoints]


EARLIEST = datetime(2009, 1, 3, tzinfo=UTC)
# A judgement's moment is rounded down to the minute: what it may still count is kept a minute longer.
_KEPT = DAY + timedelta(minutes=1)
# Events after which there is no signature although the device was asked.
UNSIGNED_AGAIN = frozenset({"device-not-ready", "interrupted", "verify-failed", "restarted"})
# Of the rest of the chain only the time counts.
SPENDING_KINDS = UNSIGNED_AGAIN | {"approved", "recalled", "device-asked", "exported", "signed"}


@dataclass(frozen=True)
class AskedSpend:
    """A device was asked to sign ``amount`` satoshis, or it was exported. ``signed``: there is a
    signature.
    """

    psbt_id: str
    at: datetime
    amount: int
    signed: bool = False


@dataclass
class Ledger:
    """``take`` each entry of ``SPENDING_KINDS`` once, in order, and ``pass_to`` the latest time before each.

    ``latest`` is the latest time so far, by which signatures are dated: setting the clock back dates nothing
    back, and what has left the window can be forgotten.
    """

    sequence: int = 0
    latest: datetime = EARLIEST
    _approved: dict[str, int] = field(default_factory=dict)
    _asked: dict[str, AskedSpend] = field(default_factory=dict)

    def take(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.pass_to(entry.sequence, entry.at)
            self._take(entry)

    def pass_to(self, sequence: int, at: str | None) -> None:
        """``at``: the latest time of the entries up to ``sequence`` that were not seen yet; None without
        any.
        """
        self.sequence = sequence
        if at is not None:
            self.latest = max(self.latest, datetime.fromisoformat(at))

    def asked(self) -> tuple[AskedSpend, ...]:
        """Spends that may be in the window that ends at ``latest`` or later, in order."""
        begin = self.latest - _KEPT
        self._asked = {key: item for key, item in self._asked.items() if item.at > begin or not item.signed}
        return tuple(self._asked.values())

    def _take(self, entry: Entry) -> None:
        psbt_id, facts = entry.note.subject, entry.note.facts
        match entry.note.kind:
            case "approved" | "recalled":
                self._approved[psbt_id] = sum(amount for _script, amount in facts["payments"])
            case "device-asked" | "exported" | "signed":
                self._forget(psbt_id)
                self._asked.setdefault(psbt_id, self._item(psbt_id, signed=entry.note.kind == "signed"))
            case kind if kind in UNSIGNED_AGAIN:
                self._forget(psbt_id)

    def _item(self, psbt_id: str, *, signed: bool) -> AskedSpend:
        return AskedSpend(psbt_id, self.latest, self._approved[psbt_id], signed)

    def _forget(self, psbt_id: str) -> None:
        """A stored signature stays, also after a restart or a late failure."""
        item = self._asked.get(psbt_id)
        if item is not None and not item.signed:
            del self._asked[psbt_id]
