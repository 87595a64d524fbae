"""The chain of decisions, a page at a time."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from signerd.core.audit import GENESIS, Entry, first_fault
from signerd.core.text import plain
from signerd.daemon.views import audit_report
from signerd.journal import Journal
from signerd.shapes import AuditEntryView, AuditPage, AuditReport

# A few milliseconds: nobody else notices that the chain is read.
AT_ONCE = 50


@dataclass(frozen=True)
class ChainReader:
    """Reads in the journal; the chain is never changed here."""

    journal: Journal

    async def verified(self) -> AuditReport:
        """Whether the chain is whole, from its beginning. Others are served meanwhile."""
        place, head = 0, GENESIS
        while some := tuple(islice(self.journal.audit(place), AT_ONCE)):
            if first_fault(some, place, head) is not None:
                # Told with all that there is; it is the person who has to wait for it now.
                return audit_report(tuple(self.journal.audit()))
            place, head = some[-1].sequence, some[-1].digest
            await asyncio.sleep(0)
        return AuditReport(entries=place, head=head.hex(), at=None, fault=None)

    async def entries(self, *, search: str, limit: int, after: int | None, before: int | None) -> AuditPage:
        """``after``: in the chain's order from there; else the newest first, from below ``before`` where given."""
        # One more than wanted says whether there are more.
        found = self.journal.audit_page(search, limit + 1, after=after, before=before)
        return AuditPage(
            entries=tuple(_view(entry) for entry in found[:limit]),
            more=len(found) > limit,
            total=self.journal.head()[0],
        )


def _view(entry: Entry) -> AuditEntryView:
    return AuditEntryView(
        sequence=entry.sequence,
        at=plain(entry.at),
        kind=plain(entry.note.kind),
        subject=plain(entry.note.subject),
        facts=_facts(entry.note.facts),
        digest=entry.digest.hex(),
    )


def _facts(facts: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((plain(name), plain(_words(value))) for name, value in sorted(facts.items()))


def _words(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ", ".join(_words(one) for one in value)
        case dict():
            return ", ".join(f"{name}: {_words(one)}" for name, one in sorted(value.items()))
        case _:
            return str(value)
