"""What the chain of decisions says about signing: a fold over its entries, from the first or from where it stood."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from signerd.core.audit import Entry
from signerd.core.rules.values import LONGEST_PERIOD

EARLIEST = datetime(2009, 1, 3, tzinfo=UTC)
# The device was asked, and this machine holds no signature all the same.
UNSIGNED_AGAIN = frozenset({"device-not-ready", "interrupted", "verify-failed", "restarted"})


@dataclass(frozen=True)
class AskedSpend:
    """A device was asked to sign payments of ``amount`` satoshis. ``signed``: it did."""

    psbt_id: str
    at: datetime
    amount: int
    signed: bool = False


@dataclass
class Ledger:
    """``take`` each entry of the chain once, in order.

    ``latest`` is the largest time seen so far, and it is what a signature is dated by: a clock that was set back when
    something was signed dates nothing back, and what has left the longest window can be forgotten.
    """

    sequence: int = 0
    latest: datetime = EARLIEST
    _approved: dict[str, int] = field(default_factory=dict)
    _asked: dict[str, AskedSpend] = field(default_factory=dict)

    def take(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.sequence = entry.sequence
            self.latest = max(self.latest, datetime.fromisoformat(entry.at))
            self._take(entry)

    def asked(self) -> tuple[AskedSpend, ...]:
        """Those that may lie in a window that ends at ``latest`` or later, in the order in which they were asked."""
        begin = self.latest - LONGEST_PERIOD
        self._asked = {key: item for key, item in self._asked.items() if item.at > begin or not item.signed}
        return tuple(self._asked.values())

    def _take(self, entry: Entry) -> None:
        psbt_id, facts = entry.note.subject, entry.note.facts
        match entry.note.kind:
            case "approved":
                self._approved[psbt_id] = sum(amount for _script, amount in facts["payments"])
            case "device-asked" | "signed":
                self._forget(psbt_id)
                self._asked.setdefault(psbt_id, self._item(psbt_id, signed=entry.note.kind == "signed"))
            case kind if kind in UNSIGNED_AGAIN:
                self._forget(psbt_id)

    def _item(self, psbt_id: str, *, signed: bool) -> AskedSpend:
        return AskedSpend(psbt_id, self.latest, self._approved[psbt_id], signed)

    def _forget(self, psbt_id: str) -> None:
        """Nothing of what a restart or a late failure tells takes back a signature that is stored."""
        item = self._asked.get(psbt_id)
        if item is not None and not item.signed:
            del self._asked[psbt_id]
