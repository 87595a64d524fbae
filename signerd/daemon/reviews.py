"""Reviews that are kept while nothing changes that they were made of."""

from dataclasses import dataclass, replace

from signerd.core.review import Review, review
from signerd.core.values import Record, ReviewContext, Snapshot
from signerd.journal import Journal

# A review is some times as large as its PSBT: of usual ones two thousand, of the largest four.
MOST_BYTES = 8 * 1024 * 1024
# An address that a token lists: its script, and its words. A deployment's PSBT is small and may list a thousand.
BYTES_OF_ONE_LISTED = 100
# More than a person has proposals: what nobody asked for in so many looks at others has ended.
LONG_AGO = 2_000


class Reviews:
    """Judging costs milliseconds for each input: a list judges only what changed since the last one.

    ``most``: of how many bytes of PSBTs, and of what their tokens list, the reviews are kept together, the last one at least.
    """

    def __init__(self, journal: Journal, most: int = MOST_BYTES) -> None:
        self._journal = journal
        self._most = most
        # In the order in which they were asked for last.
        self._known: dict[str, _Judged] = {}
        self._looks = 0

    def of(self, record: Record) -> Review:
        around = self._journal.review_context(record.snapshot)
        known = self._known.pop(record.psbt_id, None)
        if known is None or (known.snapshot, known.around) != (record.snapshot, around):
            known = _Judged(record.snapshot, around, review(record.snapshot, around))
            self._make_room(known)
        self._looks += 1
        self._known[record.psbt_id] = replace(known, look=self._looks)
        return known.found

    def _make_room(self, coming: "_Judged") -> None:
        """For what comes, the one goes that was asked for last (L6).

        A list that is longer than the room is read over and over in one order: the one that was not asked for the longest
        is the very one that comes next, and none would ever be there. It goes where nobody has asked for it for long.
        """
        kept = coming.size + sum(known.size for known in self._known.values())
        while kept > self._most and self._known:
            oldest, newest = next(iter(self._known)), next(reversed(self._known))
            forgotten = self._looks - self._known[oldest].look >= LONG_AGO
            kept -= self._known.pop(oldest if forgotten else newest).size


@dataclass(frozen=True)
class _Judged:
    """``look``: which look at any of them asked for it last."""

    snapshot: Snapshot
    around: ReviewContext
    found: Review
    look: int = 0

    @property
    def size(self) -> int:
        listed = 0 if self.around.token is None else len(self.around.token.whitelist)
        return len(self.snapshot.psbt) + listed * BYTES_OF_ONE_LISTED
