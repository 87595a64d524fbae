"""Writing checkpoints of the audit chains: signed lines in a separate file, each recorded in the log
itself.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import structlog
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from custody.common.private_files import sync_folder
from custody.schemas.common import format_time
from custody.server.audit.log import AuditLog
from custody.server.errors import Misconfigured
from custody.server.rules.audit import PLATFORM_CHAIN, Category, Event, is_chain, stored_facts
from custody.server.rules.checkpoints import Checkpoint, CheckpointSeries, Head, public_key_of, read_into
from custody.server.rules.credentials import PLATFORM
from custody.server.rules.ports import Clock, RandomBytes
from custody.server.secrets import Purpose, Secrets
from custody.server.store import Store
from custody.server.store.models.bookkeeping import AuditEventRow, AuditHeadRow

log = structlog.get_logger()

# A checkpoint is due after this time or this many rows: later rows are not covered by a signature yet.
INTERVAL: Final = timedelta(minutes=10)
ROWS: Final = 100
_HEX: Final = re.compile("[0-9a-f]{64}")
SIGNED: Final = Event(
    "CHECKPOINT_SIGNED", "// series {series}, number {number}, digest {digest}", Category.AUDIT
)


class CannotCheckpoint(Misconfigured):
    """Nothing was signed: ``hint`` says what to do."""


@dataclass(eq=False)
class Checkpoints:
    """``path``: the file, best on a disk that the database's owner cannot write to."""

    store: Store
    clock: Clock
    random: RandomBytes
    audit: AuditLog
    secrets: Secrets
    path: Path
    _tried_at: datetime | None = None
    # How many rows all chains had then.
    _rows_then: int = 0
    # The file that was read last: its inode and size, and what it contained.
    _known: tuple[tuple[int, int], CheckpointSeries] | None = None

    def public_keys(self) -> tuple[str, ...]:
        """The public keys of all checkpoint secrets, present and past, the newest first."""
        return tuple(public_key_of(secret) for secret in self.secrets.of(Purpose.CHECKPOINT))

    def run_due(self) -> int:
        """Makes a checkpoint where `INTERVAL` or `ROWS` have passed since the last try. Returns 1 if it
        did, else 0.
        """
        now, rows = self.clock(), self._count_rows()
        is_early = self._tried_at is not None and self._tried_at <= now < self._tried_at + INTERVAL
        if is_early and rows < self._rows_then + ROWS:
            return 0
        return self._try()

    def at_stop(self) -> None:
        """Makes a last checkpoint, in the process that makes them."""
        if self._tried_at is not None:
            self._try()

    def _try(self) -> int:
        self._tried_at = self.clock()
        try:
            made = self.make()
        except (CannotCheckpoint, OSError) as error:
            # The thread's other work goes on. An operator reads the log; `custody audit verify` says more.
            log.warning("no checkpoint", reason=str(error))
            made = None
        self._rows_then = self._count_rows()
        return int(made is not None)

    def _count_rows(self) -> int:
        with self.store.read() as db:
            return int(db.scalar(select(func.sum(AuditHeadRow.size))) or 0)

    def make(self) -> Checkpoint | None:
        """Signs the heads of all chains that grew. None where nothing was recorded since the last checkpoint.

        The line is on disk before the database records it: a crash in between leaves a line too many, never
        one too few. Raises CannotCheckpoint, OSError.
        """
        with self.store.write() as db, self._file() as file:
            series = self._series(file)
            heads = _heads(db)
            _check_not_cut(db, series)
            _check_continues(db, series, heads)
            grown = {name: head for name, head in heads.items() if series.heads.get(name) != head}
            if not grown or _is_own_record(db, series, grown):
                return None
            checkpoint = self._sign(series, grown)
            _append(file, checkpoint.line + b"\n")
            series.add(checkpoint)
            self._known = _identity(file), series
            facts = {"series": series.id, "number": series.number, "digest": series.last_digest}
            self.audit.record(db, PLATFORM, SIGNED, None, **facts)
            if checkpoint.number == 1:
                # Expected once. An attacker who removes the file and its records from the database cannot
                # remove this line of the server's log.
                log.warning("a new file of checkpoints begins", file=str(self.path), series=series.id)
            return checkpoint

    def _series(self, file: int) -> CheckpointSeries:
        """The file's series, cached while the file is unchanged: other writers wait for this transaction."""
        if self._known is None or self._known[0] != _identity(file):
            self._known = None
            series = _continued(file)
            self._known = _identity(file), series
        return self._known[1]

    def _sign(self, series: CheckpointSeries, grown: dict[str, Head]) -> Checkpoint:
        secret = self.secrets.of(Purpose.CHECKPOINT)[0]
        unsigned = Checkpoint(
            number=series.number + 1,
            previous=series.last_digest,
            made_at=format_time(self.clock()),
            heads=grown,
            public_key=public_key_of(secret),
        )
        return unsigned.signed(secret, self.random(32))

    @contextmanager
    def _file(self) -> Iterator[int]:
        """The open file, created (0600) where it is missing. The database's write lock excludes other
        processes.
        """
        is_new = not self.path.exists()
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            if is_new:
                sync_folder(self.path.parent)
            yield descriptor
        finally:
            os.close(descriptor)


def _continued(file: int) -> CheckpointSeries:
    """The file's series so far. Removes an incomplete last line, which a power cut may leave."""
    with os.fdopen(os.dup(file), "rb") as reader:
        reader.seek(0)
        series = read_into(CheckpointSeries(), reader)
    if series.fault is not None:
        raise CannotCheckpoint(
            f"Line {series.fault[0]} of the checkpoints {series.fault[1]}.",
            "Keep the file for the investigation, move it away, and run custody audit verify with it.",
        )
    if os.fstat(file).st_size > series.size:
        os.ftruncate(file, series.size)
    return series


def _identity(file: int) -> tuple[int, int]:
    status = os.fstat(file)
    return status.st_ino, status.st_size


def _heads(db: Session) -> dict[str, Head]:
    """Raises CannotCheckpoint for a head that the platform cannot have written."""
    heads: dict[str, Head] = {}
    for stored in db.scalars(select(AuditHeadRow).where(AuditHeadRow.size > 0)):
        with suppress(AttributeError, ValueError):
            if is_chain(stored.chain_id):
                heads[stored.chain_id] = Head(size=stored.size, hash=stored.head_hash.hex())
        if stored.chain_id not in heads:
            raise CannotCheckpoint(
                f"The head of the chain {stored.chain_id} is malformed.",
                "Run custody audit verify, and stop all writers until you know what happened.",
            )
    return heads


def _append(file: int, line: bytes) -> None:
    written = os.write(file, line)
    if written != len(line):
        raise CannotCheckpoint("The disk of the checkpoints is full.", "Make room on it.")
    os.fsync(file)


def _check_continues(db: Session, series: CheckpointSeries, heads: dict[str, Head]) -> None:
    """Refuses a chain that contradicts the last checkpoint: a new signature would vouch for the change."""
    for chain_id, before in series.heads.items():
        now = heads.get(chain_id)
        if now == before:
            continue
        hashed = db.scalar(
            select(AuditEventRow.event_hash).where(
                AuditEventRow.chain_id == chain_id, AuditEventRow.position == before.size
            )
        )
        if now is None or now.size < before.size or hashed is None or hashed.hex() != before.hash:
            raise CannotCheckpoint(
                f"The chain {chain_id} contradicts its last checkpoint: it was cut or rewritten.",
                "Run custody audit verify, and stop all writers until you know what happened.",
            )


def _check_not_cut(db: Session, series: CheckpointSeries) -> None:
    """Refuses a file that lost its last lines: the next line would take a lost one's number and place."""
    if not series.id:
        return
    last = db.scalar(
        select(AuditEventRow.facts)
        .where(
            AuditEventRow.chain_id == PLATFORM_CHAIN,
            AuditEventRow.action == SIGNED.action,
            AuditEventRow.facts.contains(f'"series":"{series.id}"'),
        )
        .order_by(AuditEventRow.position.desc())
        .limit(1)
    )
    record = recorded(last)
    if record is None:
        return
    _, number, digest = record
    if number > series.number or (number == series.number and digest != series.last_digest):
        raise CannotCheckpoint(
            f"The file of checkpoints was cut: the audit log names checkpoint {number} of it.",
            "Keep the file for the investigation, move it away, and run custody audit verify with it.",
        )


def _is_own_record(db: Session, series: CheckpointSeries, grown: dict[str, Head]) -> bool:
    """Whether the record of the last checkpoint is the only new event."""
    before, now = series.heads.get(PLATFORM_CHAIN), grown.get(PLATFORM_CHAIN)
    if before is None or now is None or len(grown) > 1 or now.size != before.size + 1:
        return False
    action = select(AuditEventRow.action).where(
        AuditEventRow.chain_id == PLATFORM_CHAIN, AuditEventRow.position == now.size
    )
    return db.scalar(action) == SIGNED.action


def recorded(facts: object) -> tuple[str, int, str] | None:
    """The series, number and digest of a recorded checkpoint; None for a row that was altered."""
    match stored_facts(facts):
        case {"series": str(series), "number": int(number), "digest": str(digest)}:
            is_whole = number > 0 and _HEX.fullmatch(series) and _HEX.fullmatch(digest)
            return (series, number, digest) if is_whole else None
    return None
