"""The audit chain: each entry's hash covers the one before, so that an edited or missing row shows."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from signerd.core.text import canonical

DOMAIN = b"signerd-audit-v1"
GENESIS = bytes(32)


@dataclass(frozen=True)
class Note:
    """An entry that is not in the chain yet. ``facts``: text, whole numbers, and lists of them."""

    kind: str
    subject: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """A row of the chain. ``at`` is RFC 3339 UTC by the machine's clock; the chain gives the order."""

    sequence: int
    at: str
    note: Note
    previous: bytes
    digest: bytes


def link(sequence: int, at: str, note: Note, previous: bytes) -> Entry:
    """The entry that follows ``previous``."""
    body = canonical(
        {
            "at": at,
            "facts": dict(note.facts),
            "kind": note.kind,
            "sequence": sequence,
            "subject": note.subject,
        }
    )
    return Entry(sequence, at, note, previous, hashlib.sha256(DOMAIN + previous + body).digest())


def first_fault(
    entries: Iterable[Entry], after: int = 0, previous: bytes = GENESIS
) -> tuple[int, str] | None:
    """The number of the first entry that breaks the chain, and why; None where the chain is intact.

    ``after`` and ``previous``: number and hash of a verified entry before the first one.
    """
    expected = after + 1
    for entry in entries:
        if entry.sequence != expected:
            return expected, f"entry {expected} is missing"
        if entry.previous != previous:
            return entry.sequence, f"entry {entry.sequence} does not follow the entry before it"
        if link(entry.sequence, entry.at, entry.note, previous).digest != entry.digest:
            return entry.sequence, f"entry {entry.sequence} was changed"
        previous, expected = entry.digest, expected + 1
    return None
