"""Pairing over a real journal, with clocks that a test moves and random bytes that never repeat."""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from signerd.apps.paired import PairedApps
from signerd.errors import NotPaired
from signerd.feed import Feed
from signerd.runtime import DaemonDependencies, FaultPoint, no_fault
from signerd.shapes import Collected
from tests.support.desk import open_journal

SITE = "https://wallet.example"
READ = frozenset({"read"})


@dataclass
class World:
    folder: Path
    wall: datetime = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    seconds: float = 1_000.0
    given: int = 0
    fault: FaultPoint = no_fault

    def entropy(self, count: int) -> bytes:
        self.given += 1
        return hashlib.shake_256(self.given.to_bytes(8)).digest(count)

    def pass_time(self, seconds: float) -> None:
        self.seconds += seconds
        self.wall += timedelta(seconds=seconds)

    def open(self) -> None:
        self.journal = open_journal(self.folder, now=lambda: self.wall, fault=self.fault)
        self.feed = Feed()
        outside = DaemonDependencies(clock=lambda: self.seconds, entropy=self.entropy)
        self.apps = PairedApps(self.journal, self.feed, outside)

    def restart(self) -> None:
        self.journal.close()
        self.open()

    def notes(self) -> list[str]:
        return [entry.note.kind for entry in self.journal.audit()]

    async def paired(
        self, rights: frozenset[str] = READ, origin: str | None = None, days: int = 90
    ) -> Collected:
        asked = await self.apps.ask(f"App {self.given}", rights, origin)
        await self.apps.accept(asked.id, asked.code, rights=None, days=days)
        return await self.apps.collect(asked.id, asked.secret)

    def works(self, token: str | None, origin: str | None = None) -> bool:
        assert token is not None
        try:
            self.apps.caller(token, origin)
        except NotPaired:
            return False
        return True
