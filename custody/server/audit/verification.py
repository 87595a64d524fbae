"""Checking the audit log: every chain, the files of checkpoints, and each against the other."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from custody.server.audit.checkpoints import SIGNED, recorded
from custody.server.audit.log import chained_rows
from custody.server.rules import audit
from custody.server.rules.checkpoints import CheckpointHistory, marks_of, read_file
from custody.server.store import Store
from custody.server.store.models.bookkeeping import AuditEventRow, AuditHeadRow


@dataclass(frozen=True)
class AuditFault:
    """A fault. ``where``: a chain or a file; ``place``: its row or line (0: the whole)."""

    where: str
    unit: str
    place: int
    sentence: str


@dataclass(frozen=True)
class Report:
    chains: int
    rows: int
    checkpoints: int
    findings: tuple[AuditFault, ...]


Marks = Mapping[str, Mapping[int, audit.AttestedHash]]


def check_everything(store: Store, files: Sequence[Path], trusted: frozenset[str]) -> Report:
    """The chains, the files of checkpoints, and each against the other.

    The files are read before and after the database: the database must contain what they say before, and they
    must contain what it names after. Raises OSError.
    """
    before = {path: read_file(path, trusted) for path in files}
    read = read_through(store, marks_of(before.values()))
    named = _recorded(store)
    after = {path: read_file(path, trusted) for path in files}
    wrong = [
        AuditFault(str(path), "line", history.fault[0], f"the line {history.fault[1]}")
        for path, history in after.items()
        if history.fault is not None
    ]
    checkpoints = sum(history.number for history in after.values())
    return Report(read.chains, read.rows, checkpoints, (*read.findings, *wrong, *_missing(after, named)))


def read_through(store: Store, marks: Marks | None = None) -> Report:
    """The first fault of every chain that has one, by the database alone, read in one snapshot; in order of
    the chains' names. ``marks``: by chain and position, what the checkpoints say.
    """
    known = marks or {}
    with store.read() as db:
        heads = {head.chain_id: head for head in db.scalars(select(AuditHeadRow))}
        # A forged row may have anything in a column: it is read, and reported.
        chains = sorted({*heads, *known, *db.scalars(select(AuditEventRow.chain_id).distinct())}, key=str)
        faults = [
            _verify_chain(db, chain_id, heads.get(chain_id), known.get(chain_id, {})) for chain_id in chains
        ]
    sizes = [head.size for head in heads.values() if isinstance(head.size, int)]
    findings = (AuditFault(each.chain_id, "row", each.position, each.sentence) for each in faults if each)
    return Report(len(chains), sum(sizes), 0, tuple(findings))


def _verify_chain(
    db: Session, chain_id: str, head: AuditHeadRow | None, marks: Mapping[int, audit.AttestedHash]
) -> audit.ChainFault | None:
    if not audit.is_chain(chain_id):
        return audit.ChainFault(str(chain_id), 1, "no chain has such a name")
    if head is None:
        has_rows = db.scalars(
            select(AuditEventRow.event_uid).where(AuditEventRow.chain_id == chain_id)
        ).first()
        return audit.ChainFault(chain_id, 1, "the chain has rows but no head" if has_rows else _gone(marks))
    read = 0

    def counted(rows: Iterable[audit.ChainedRow]) -> Iterator[audit.ChainedRow]:
        nonlocal read
        for read, row in enumerate(rows, start=1):  # noqa: B007 - the count is read below
            yield row

    try:
        # A fault stops the reading early; the database's cursor has to be closed then.
        with closing(chained_rows(db, AuditEventRow.chain_id == chain_id)) as rows:
            return audit.find_fault(chain_id, counted(rows), head.size, head.head_hash, marks)
    except DBAPIError as error:
        if error.connection_invalidated:
            raise
        # The database does not say which row of a batch it failed on.
        return audit.ChainFault(chain_id, read + 1, "the database cannot read its rows from here on")


def _gone(marks: Mapping[int, audit.AttestedHash]) -> str:
    last = max(marks)
    return f"the whole chain is gone: {marks[last].source} names {last} rows"


def _recorded(store: Store) -> dict[str, dict[int, set[str]]]:
    """By series and number, the digests in the audit log: one each, unless a file was cut and continued."""
    query = select(AuditEventRow.facts).where(
        AuditEventRow.chain_id == audit.PLATFORM_CHAIN, AuditEventRow.action == SIGNED.action
    )
    uids: dict[str, dict[int, set[str]]] = {}
    with store.read() as db:
        for facts in db.scalars(query):
            # The chain's own check reports a row that was altered.
            if record := recorded(facts):
                series, number, digest = record
                uids.setdefault(series, {}).setdefault(number, set()).add(digest)
    return uids


def _missing(
    files: Mapping[Path, CheckpointHistory], named: Mapping[str, dict[int, set[str]]]
) -> Iterator[AuditFault]:
    """What the audit log names and no file holds. Of several copies of a file, the longest counts."""
    longest: dict[str, tuple[Path, CheckpointHistory]] = {}
    for path, history in files.items():
        known = longest.get(history.id)
        if known is None or history.number > known[1].number:
            longest[history.id] = path, history
    for series_id, records in named.items():
        if series_id in longest:
            yield from _lost(*longest[series_id], records)
        else:
            sentence = (
                f"the audit log names {len(records)} checkpoints of it, and no given file contains them"
            )
            yield AuditFault(f"checkpoints {series_id[:16]}", "line", 0, sentence)
    for path, history in files.items():
        yield from _forked(path, history, *longest[history.id])


def _lost(path: Path, history: CheckpointHistory, records: Mapping[int, set[str]]) -> Iterator[AuditFault]:
    """The first recorded checkpoint that the file does not hold."""
    for number in sorted(records):
        if number > history.number:
            if history.fault is None:
                sentence = f"the file was cut: the audit log names checkpoint {max(records)} of it"
                yield AuditFault(str(path), "line", history.number + 1, sentence)
            return
        if records[number] != {history.digests[number - 1]}:
            yield AuditFault(
                str(path), "line", number, "the audit log names another checkpoint with this number"
            )
            return


def _forked(
    path: Path, history: CheckpointHistory, other_path: Path, other: CheckpointHistory
) -> Iterator[AuditFault]:
    """Copies of one file must share a history: the longer one starts with the shorter one."""
    for line, (one, another) in enumerate(zip(history.digests, other.digests, strict=False), start=1):
        if one != another:
            yield AuditFault(
                str(path), "line", line, f"{other_path} has another line there: two histories were signed"
            )
            return
