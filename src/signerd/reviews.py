"""Reviews that are kept while nothing changes that they were made of."""

from signerd.core.review import Review, review
from signerd.core.values import Record, Snapshot, Surroundings
from signerd.journal import Journal

# A review is some times as large as its PSBT: of usual ones two thousand, of the largest four.
MOST_BYTES = 8 * 1024 * 1024
# An address that a token lists: its script, and its words. A deployment's PSBT is small and may list a thousand.
BYTES_OF_ONE_LISTED = 100


class Reviews:
    """Judging costs milliseconds for each input: a list judges only what changed since the last one.

    ``most``: of how many bytes of PSBTs, and of what their tokens list, the reviews are kept together, the newest at least.
    """

    def __init__(self, journal: Journal, most: int = MOST_BYTES) -> None:
        self._journal = journal
        self._most = most
        self._known: dict[str, tuple[Snapshot, Surroundings, Review]] = {}

    def of(self, record: Record) -> Review:
        around = self._journal.surroundings(record.snapshot)
        known = self._known.get(record.psbt_id)
        if known is None or known[:2] != (record.snapshot, around):
            known = (record.snapshot, around, review(record.snapshot, around))
            self._keep(record.psbt_id, known)
        return known[2]

    def _keep(self, psbt_id: str, judged: tuple[Snapshot, Surroundings, Review]) -> None:
        self._known.pop(psbt_id, None)
        self._known[psbt_id] = judged
        kept = sum(map(_bytes_of, self._known.values()))
        while kept > self._most and len(self._known) > 1:
            oldest = next(iter(self._known))
            kept -= _bytes_of(self._known.pop(oldest))


def _bytes_of(judged: tuple[Snapshot, Surroundings, Review]) -> int:
    snapshot, around, _review = judged
    listed = 0 if around.token is None else len(around.token.whitelist)
    return len(snapshot.psbt) + listed * BYTES_OF_ONE_LISTED
