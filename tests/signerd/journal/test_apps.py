"""Paired apps in the journal: one transaction with its note, or nothing; what was granted is
never widened.
"""

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from signerd.core.audit import first_fault
from signerd.errors import JournalUnwritable
from signerd.journal import Journal
from signerd.journal.apps import App
from signerd.journal.storage import JOURNAL
from signerd.runtime import FaultPoint
from tests.signerd.journal.test_journal import NOW, open_one

SITE = "https://wallet.example"


def an_app(app_id: str = "a1", origin: str | None = None) -> App:
    rights = frozenset({"read", "xpub"})
    return App(app_id, "An App", origin, rights, app_id.encode(), NOW, NOW + timedelta(days=90))


def notes(journal: Journal) -> list[tuple[str, str]]:
    return [(entry.note.kind, entry.note.subject) for entry in journal.audit()]


def test_the_chain_tells_who_was_let_in_to_what(tmp_path: Path) -> None:
    with open_one(tmp_path) as journal:
        journal.apps.let_in(SITE, NOW)
        journal.apps.pair(an_app("a2", SITE))
        journal.apps.shut_out(SITE, NOW)
        entries = [entry.note for entry in journal.audit()]
        assert [(note.kind, note.subject) for note in entries] == [
            ("origin-let-in", SITE),
            ("app-paired", "a2"),
            ("origin-shut-out", SITE),
        ]
        assert entries[1].facts == {
            "expires": "2026-04-02T03:04:05+00:00",
            "name": "An App",
            "origin": SITE,
            "rights": ["read", "xpub"],
        }
        assert entries[2].facts == {"apps": ["a2"]}
        journal.apps.use(an_app("a2", SITE), NOW.date())
    with open_one(tmp_path) as journal:
        (shut,) = journal.apps.all()
        assert (shut.revoked, shut.used) == (NOW, NOW.date())
        assert journal.apps.origins(NOW) == {}


def test_l13_what_was_granted_can_neither_be_widened_nor_brought_back(tmp_path: Path) -> None:
    with open_one(tmp_path) as journal:
        journal.apps.pair(an_app())
        journal.apps.revoke(an_app(), NOW)
    connection = sqlite3.connect(tmp_path / JOURNAL)
    for statement in (
        "UPDATE apps SET rights = 'approve'",
        "UPDATE apps SET expires = '2099-01-01T00:00:00+00:00'",
        "UPDATE apps SET token_hash = x'00'",
        "UPDATE apps SET origin = 'https://evil.example'",
        "UPDATE apps SET revoked = NULL",
    ):
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(statement)
    connection.close()


def test_two_apps_never_have_one_token(tmp_path: Path) -> None:
    with open_one(tmp_path) as journal:
        journal.apps.pair(an_app())
        same = App("a2", "Other", None, frozenset({"read"}), b"a1", NOW, NOW)
        with pytest.raises(JournalUnwritable):
            journal.apps.pair(same)
        assert notes(journal) == [("app-paired", "a1")]


WRITES = {
    "app-paired": lambda journal: journal.apps.pair(an_app("a9")),
    "app-used": lambda journal: journal.apps.use(an_app(), NOW.date()),
    "app-revoked": lambda journal: journal.apps.revoke(an_app(), NOW),
    "origin-let-in": lambda journal: journal.apps.let_in("https://other.example", NOW),
    "origin-shut-out": lambda journal: journal.apps.shut_out(SITE, NOW),
}


@pytest.mark.parametrize("name", list(WRITES))
def test_f_a_kill_on_either_side_of_the_commit_leaves_both_or_neither(tmp_path: Path, name: str) -> None:
    """The change and its note: before the commit neither is there, behind it both are."""

    class Killed(BaseException):
        pass

    def killing(point: str) -> FaultPoint:
        def fault(passed: str) -> None:
            if passed == point:
                raise Killed

        return fault

    def look(journal: Journal) -> tuple[object, ...]:
        return (
            journal.apps.all(),
            dict(journal.apps.origins(datetime.min.replace(tzinfo=UTC))),
            notes(journal),
        )

    with open_one(tmp_path) as journal:
        journal.apps.pair(an_app())
        journal.apps.pair(an_app("a2", SITE))
        journal.apps.let_in(SITE, NOW)
        before = look(journal)
    with open_one(tmp_path, fault=killing(f"journal:before:{name}")) as journal, pytest.raises(Killed):
        WRITES[name](journal)
    with open_one(tmp_path) as journal:
        assert look(journal) == before
    with open_one(tmp_path, fault=killing(f"journal:after:{name}")) as journal, pytest.raises(Killed):
        WRITES[name](journal)
    with open_one(tmp_path) as journal:
        apps, origins, told = look(journal)
        assert (apps, origins) != before[:2]
        assert len(told) == len(before[2]) + 1
        assert told[-1][0] == name
        assert first_fault(journal.audit()) is None
