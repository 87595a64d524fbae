"""Scheduled backups: made when they are due, by a child, and told where they fail."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from pyrage import x25519

from signerd.account.config import BackupSection
from signerd.backup.container import unpack
from signerd.backup.schedule import (
    back_up_on_schedule,
    is_due,
    last_backup,
    made_by_child,
    note_made,
    reminders,
)
from signerd.backup.sealing import open_by
from signerd.feed import Feed, Troubles
from tests.support.backups import NOON, remembering

RECIPIENT = "age1" + "q" * 58
WEEKLY = BackupSection(folder="/backups", recipient=RECIPIENT)

MARK = "ab" * 32


def told(state, days, section=BackupSection(), *, pinned=True):  # noqa: B008 - a frozen value
    return list(reminders(state, section, NOON + timedelta(days=days), pinned=pinned))


@pytest.mark.parametrize(("section", "old"), [(BackupSection(), 32), (WEEKLY, 9)])
def test_an_old_one_is_told(tmp_path, section, old):
    assert told(tmp_path, 0, section, pinned=False) == []
    assert ["There is no backup" in sentence for sentence in told(tmp_path, 0, section)] == [True]
    note_made(tmp_path, NOON, MARK)
    assert told(tmp_path, old - 2, section) == []
    (sentence,) = told(tmp_path, old, section)
    assert "2026-01-02" in sentence


def test_the_schedule_asks_each_so_many_days_and_after_a_clock_was_set_back(tmp_path):
    assert is_due(tmp_path, WEEKLY, NOON)
    note_made(tmp_path, NOON, MARK)
    assert [is_due(tmp_path, WEEKLY, NOON + timedelta(days=days)) for days in (0, 6, 7, -1)] == [
        False,
        False,
        True,
        True,
    ]


pytestmark = pytest.mark.anyio


@dataclass
class Made:
    """Backups that fail as they are told to; a clock that goes on by half a day with each look."""

    state: object
    faults: list
    now: object = NOON
    looks: int = 0
    made: list = field(default_factory=list)

    async def make(self, _state, _section):
        fault = self.faults.pop(0) if self.faults else None
        self.made.append(self.now)
        if fault is None:
            note_made(self.state, self.now, f"{len(self.made):064}")
        return fault

    async def sleep(self, _seconds):
        self.looks += 1
        self.now += timedelta(hours=12)
        if self.looks == 6:
            raise asyncio.CancelledError


async def test_each_day_and_again_after_a_failure(tmp_path):
    section = BackupSection(folder="/b", recipient="age1" + "q" * 58, every_days=1)
    made, feed = Made(tmp_path, ["the disk is full", None]), Feed()
    troubles = Troubles(feed)
    noted = []
    with pytest.raises(asyncio.CancelledError):
        await back_up_on_schedule(
            tmp_path,
            section,
            troubles,
            lambda: made.now,
            lambda *told: noted.append(told),
            make=made.make,
            sleep=made.sleep,
        )
    assert [(at - NOON) / timedelta(hours=12) for at in made.made] == [0, 1, 3, 5]
    # Each that was made, whichever program made it, and no failed one.
    assert list(dict.fromkeys(int(fingerprint) for _at, fingerprint in noted)) == [2, 3, 4]
    assert ["the disk is full" in line.text for line in feed.since(0)] == [True]
    assert troubles.sentences() == ()


async def test_the_child_writes_a_whole_backup_for_the_key(tmp_path):
    state, folder = remembering(tmp_path / "s"), tmp_path / "disk"
    folder.mkdir()
    identity = x25519.Identity.generate()
    (tmp_path / "key").write_text(str(identity))
    section = BackupSection(folder=folder, recipient=str(identity.to_public()))
    assert await made_by_child(state, section) is None
    (file,) = folder.iterdir()
    assert unpack(open_by(file.read_bytes(), tmp_path / "key")).manifest.entries > 0
    assert last_backup(state) is not None
    assert file.stat().st_mode & 0o077 == 0


async def test_a_child_that_cannot_says_why(tmp_path):
    state = remembering(tmp_path / "s")
    key = str(x25519.Identity.generate().to_public())
    section = BackupSection(folder=tmp_path / "absent", recipient=key)
    assert await made_by_child(state, section) == f"{tmp_path / 'absent'} is not a folder."
    assert last_backup(state) is None
