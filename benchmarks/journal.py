"""The cost of a durable decision: a journal's commit compared with one fsync.

Both are in one folder (``TMPDIR`` chooses the disk) and take turns. The bare write appends as many bytes as
the commit before it added to the write-ahead log. The whole decision, with its reads and its review, is
measured too.
"""

import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from signerd.core.audit import Note
from signerd.core.events import PersonDeclined
from signerd.journal import Journal
from signerd.journal.storage import JOURNAL
from tests.support.desk import CLAIM, NETWORK, VAULT_ID, make_pin, own_keys, snapshot_of, spend

# A hundred stay below the thousand pages at which SQLite moves the log into the database.
ROUNDS = 100


@dataclass
class Clock:
    """Times the journal's fault points right before and after each COMMIT."""

    began: float = 0.0
    lasted: float = 0.0

    def __call__(self, point: str) -> None:
        if point.startswith("journal:before:"):
            self.began = time.perf_counter()
        elif point.startswith("journal:after:"):
            self.lasted = time.perf_counter() - self.began


@dataclass(frozen=True)
class Round:
    """Seconds, and the bytes that both wrote."""

    decision: float
    commit: float
    bare: float
    size: int


def open_journal(folder: Path, clock: Clock) -> Journal:
    return Journal(folder, network=NETWORK, fault=clock)


def fill(folder: Path, clock: Clock) -> None:
    """A pinned vault with proposals that wait for a person; closing it checkpoints the log."""
    proposal = spend()
    with open_journal(folder, clock) as journal:
        journal.add_own_keys(own_keys(), "key-1", Note("registered", "key-1"))
        journal.learn(CLAIM)
        journal.add_pin(make_pin(), Note("pinned", VAULT_ID))
        for number in range(ROUNDS):
            journal.poll(snapshot_of(proposal, f"p-{number}"))


def one_round(journal: Journal, clock: Clock, log: Path, bare: int, number: int) -> Round:
    size = log.stat().st_size if log.exists() else 0
    began = time.perf_counter()
    journal.decide(f"p-{number}", PersonDeclined("not mine"))
    decided = time.perf_counter() - began
    data = os.urandom(log.stat().st_size - size)
    began = time.perf_counter()
    os.write(bare, data)
    os.fsync(bare)
    return Round(decided, clock.lasted, time.perf_counter() - began, len(data))


def measure(folder: Path) -> list[Round]:
    clock = Clock()
    fill(folder, clock)
    bare = os.open(folder / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        with open_journal(folder, clock) as journal:
            log = folder / f"{JOURNAL}-wal"
            return [one_round(journal, clock, log, bare, number) for number in range(ROUNDS)]
    finally:
        os.close(bare)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench") as name:
        rounds = measure(Path(name))
    print(
        f"a decision on the disk, {ROUNDS} rounds, "
        f"median of {median(one.size for one in rounds):.0f} bytes each"
    )
    bare = [one.bare for one in rounds]
    print(f"{'':>16} {'median ms':>10} {'best ms':>9} {'÷ one fsync':>12} {'best ÷ best':>12}")
    for what, times in (
        ("write, fsync", bare),
        ("commit", [one.commit for one in rounds]),
        ("whole decision", [one.decision for one in rounds]),
    ):
        print(
            f"{what:>16} {median(times) * 1000:10.3f} {min(times) * 1000:9.3f} "
            f"{median(times) / median(bare):12.2f} {min(times) / min(bare):12.2f}"
        )
