"""When the person is reminded, and when the schedule asks for a backup."""

from datetime import timedelta

import pytest

from signerd.account.config import BackupSection
from signerd.backup.last import NAME, is_due, last_made, note_made, reminders
from tests.support.backups import NOON

RECIPIENT = "age1" + "q" * 58
WEEKLY = BackupSection(folder="/backups", recipient=RECIPIENT)


def told(state, days, section=BackupSection(), *, pinned=True):  # noqa: B008 - a frozen value
    return list(reminders(state, section, NOON + timedelta(days=days), pinned=pinned))


def test_there_is_nothing_to_remind_of_before_a_vault_is_pinned(tmp_path):
    assert told(tmp_path, 0, pinned=False) == []
    (sentence,) = told(tmp_path, 0)
    assert "There is no backup" in sentence


@pytest.mark.parametrize(("section", "old"), [(BackupSection(), 32), (WEEKLY, 9)])
def test_an_old_one_is_told(tmp_path, section, old):
    note_made(tmp_path, NOON)
    assert told(tmp_path, old - 2, section) == []
    (sentence,) = told(tmp_path, old, section)
    assert "2026-01-02" in sentence


def test_the_schedule_asks_each_so_many_days_and_after_a_clock_was_set_back(tmp_path):
    assert is_due(tmp_path, WEEKLY, NOON)
    note_made(tmp_path, NOON)
    assert [is_due(tmp_path, WEEKLY, NOON + timedelta(days=days)) for days in (0, 6, 7, -1)] == [
        False,
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"made_at": 5}', '{"made_at": "2026-01-02T00:00:00"}'])
def test_a_note_that_cannot_be_read_is_none(tmp_path, text):
    (tmp_path / NAME).write_text(text)
    assert last_made(tmp_path) is None
