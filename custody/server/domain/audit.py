"""The audit chain: the bytes that are hashed, and how a broken chain is found.

``event_hash = SHA256("audit-v1" ‖ prev_hash ‖ JCS(row without its hashes))``; the first row follows 32 zero
bytes. JCS is RFC 8785; rows hold text and integers only, for which the encoding is short.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from multisig.canonical_json import canonical_json

PREFIX = b"audit-v1"
GENESIS = bytes(32)

PLATFORM_CHAIN = "platform"


class Category(StrEnum):
    """What an event is about. SIGNING is the specification's word; the others follow it."""

    SIGN_IN = "SIGN_IN"
    ACCESS = "ACCESS"
    PEOPLE = "PEOPLE"
    KEYS = "KEYS"
    VAULTS = "VAULTS"
    ADDRESS_BOOK = "ADDRESS_BOOK"
    ONBOARDING = "ONBOARDING"
    PROPOSALS = "PROPOSALS"
    FORWARDING = "FORWARDING"
    TOKENS = "TOKENS"
    SIGNING = "SIGNING"
    CHAIN = "CHAIN"
    PURCHASES = "PURCHASES"
    WEBHOOKS = "WEBHOOKS"
    AUDIT = "AUDIT"
    JOBS = "JOBS"
    ADVISORIES = "ADVISORIES"


def chain_of(org_uid: str, workspace_uid: str) -> str:
    """The one chain an event belongs to: the workspace's, else the organisation's, else the platform's."""
    if workspace_uid:
        return f"workspace:{workspace_uid}"
    return f"organisation:{org_uid}" if org_uid else PLATFORM_CHAIN


def is_chain(chain_id: object) -> bool:
    """Whether ``chain_of`` can return this name. Another program may have written into the database."""
    return isinstance(chain_id, str) and _CHAIN.fullmatch(chain_id) is not None


_CHAIN = re.compile("platform|(organisation|workspace):[1-9][0-9]{0,18}")


@dataclass(frozen=True)
class AuditRow:
    """A row as it is hashed. ``timestamp`` is RFC 3339 in UTC with milliseconds; ``position`` counts
    from 1.
    """

    event_uid: str
    chain_id: str
    position: int
    org_uid: str
    workspace_uid: str
    timestamp: str
    category: str
    action: str
    description: str
    user_uuid: int
    user_name: str
    role_uid: str
    trace_id: str


@dataclass(frozen=True)
class ChainedRow:
    row: AuditRow
    prev_hash: bytes
    event_hash: bytes


@dataclass(frozen=True)
class Mark:
    """What the row at a position must hash to, and which checkpoint says so ("checkpoint 7 of …")."""

    event_hash: bytes
    source: str


@dataclass(frozen=True)
class ChainFault:
    """The first thing that is wrong with a chain, and where."""

    chain_id: str
    position: int
    sentence: str


def event_hash(prev_hash: bytes, row: AuditRow) -> bytes:
    return sha256(PREFIX + prev_hash + canonical_json(vars(row))).digest()


def is_hash_of(hashed: bytes, prev_hash: bytes, row: AuditRow) -> bool:
    """Whether the row hashes to ``hashed``. False also where the stored values have types that cannot be
    hashed.
    """
    try:
        return hashed == event_hash(prev_hash, row)
    except (TypeError, ValueError):
        return False


def find_fault(
    chain_id: str,
    rows: Iterable[ChainedRow],
    size: int,
    head_hash: bytes,
    marks: Mapping[int, Mark] | None = None,
) -> ChainFault | None:
    """Reads a chain in order of position and names the first row that was edited, removed, reordered or cut.

    ``size`` and ``head_hash`` are the stored head. An attacker who rewrites the rows and the head
    consistently is caught by ``marks``: the row hashes, by position, of checkpoints that are kept elsewhere.
    """
    marks = marks or {}
    previous, position, vouched = GENESIS, 0, 0
    for chained in rows:
        position += 1
        sentence = _fault_of(chained, chain_id, position, previous)
        if sentence is not None:
            return ChainFault(chain_id, position, sentence)
        previous = chained.event_hash
        if position in marks:
            if marks[position].event_hash != previous:
                return ChainFault(chain_id, vouched + 1, _rewritten(vouched, position, marks[position]))
            vouched = position
    return _fault_at_end(chain_id, position, previous, (size, head_hash), marks)


def _fault_at_end(
    chain_id: str, position: int, last: bytes, head: tuple[int, bytes], marks: Mapping[int, Mark]
) -> ChainFault | None:
    if position != head[0]:
        return ChainFault(
            chain_id, position + 1, f"the chain should have {head[0]} rows but ends after {position}"
        )
    if last != head[1]:
        return ChainFault(chain_id, position, "the last row is not the one that the head names")
    missing = max(marks, default=0)
    if missing > position:
        sentence = f"the chain was cut after row {position}: {marks[missing].source} names {missing} rows"
        return ChainFault(chain_id, position + 1, sentence)
    return None


def _rewritten(vouched: int, position: int, mark: Mark) -> str:
    return (
        f"the chain was rewritten somewhere from row {vouched + 1} to row {position}: "
        f"{mark.source} names another row {position}"
    )


def _fault_of(chained: ChainedRow, chain_id: str, position: int, previous: bytes) -> str | None:
    if chained.row.position != position:
        return f"row {position} is missing: row {chained.row.position} follows"
    if chained.row.chain_id != chain_id:
        return "the row belongs to another chain"
    if chained.prev_hash != previous:
        return "the row does not follow the one before it"
    if not is_hash_of(chained.event_hash, previous, chained.row):
        return "the row was altered"
    return None
