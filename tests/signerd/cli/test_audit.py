"""audit verify, audit start-over."""

import shutil
import sqlite3

import pytest

from signerd.cli.terminal import Exit
from signerd.core.audit import Note
from signerd.core.values import Limits
from signerd.journal import Journal
from signerd.shapes import AuditReport
from tests.support.command import signerd
from tests.support.daemons import prepare
from tests.support.desk import NETWORK
from tests.support.served import make_outer, served_daemon, served_script

TAMPER = {
    "edited": ("UPDATE audit SET facts = '{}' WHERE sequence = 2", 2),
    "deleted": ("DELETE FROM audit WHERE sequence = 2", 2),
    "reordered": ("UPDATE audit SET sequence = 99 WHERE sequence = 1", 1),
}


@pytest.fixture
def state(tmp_path):
    folder = tmp_path / "s"
    folder.mkdir(mode=0o700)
    prepare(folder)
    return folder


def test_without_a_daemon_the_journal_is_read(state):
    ended = signerd("audit", "verify", state=state)
    assert ended.status == Exit.OK
    assert "Whole: 3 entries" in ended.out
    report = AuditReport.model_validate(signerd("audit", "verify", "--json", state=state).json)
    with Journal(state, network=NETWORK, limits=Limits()) as journal:
        assert (report.entries, report.head) == (journal.head()[0], journal.head()[1].hex())


def test_with_a_daemon_the_daemon_is_asked(tmp_path):
    with served_daemon(tmp_path / "s", make_outer(tmp_path)) as daemon:
        report = signerd("audit", "verify", "--json", state=daemon.state).json
        assert report["fault"] is None
        assert report["entries"] >= 4
    broken = AuditReport(entries=7, head="00", at=3, fault="entry 3 was changed")
    with served_script(tmp_path / "t", status=None, verify_audit=broken) as daemon:
        daemon.service.answers["status"] = daemon_status()
        ended = signerd("audit", "verify", state=daemon.state)
        assert (ended.status, "entry 3 was changed" in ended.out) == (Exit.AUDIT, True)


def daemon_status():
    from tests.signerd.loopback.test_routes import STATUS

    return STATUS


@pytest.mark.parametrize(("statement", "at"), TAMPER.values(), ids=TAMPER)
def test_p42_what_was_done_to_the_chain_is_named_and_left_as_it_is(state, statement, at):
    with sqlite3.connect(state / "journal.sqlite3") as database:
        for (trigger,) in database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            database.execute(f'DROP TRIGGER "{trigger}"')
        database.execute(statement)
    database.close()
    ended = signerd("audit", "verify", "--json", state=state)
    assert ended.status == Exit.AUDIT
    assert ended.json["at"] == at
    assert "NOT WHOLE" in signerd("audit", "verify", state=state).out
    assert not list(state.glob("damaged-*"))


@pytest.mark.parametrize("content", [b"", b"this is no database, and was never one" * 200])
def test_a_file_that_is_no_journal_is_not_whole(state, content):
    (state / "journal.sqlite3").write_bytes(content)
    ended = signerd("audit", "verify", "--json", state=state)
    assert ended.status == Exit.AUDIT
    assert ended.json["fault"]
    assert (state / "journal.sqlite3").read_bytes() == content


def test_no_journal_at_all(tmp_path):
    assert signerd("audit", "verify", state=tmp_path / "nowhere").status == Exit.STATE


# --- start-over ---------------------------------------------------------------------------------------------


def test_a_journal_that_is_there_is_never_begun_anew(state):
    assert signerd("audit", "start-over", "--yes", state=state).status == Exit.STATE
    assert "Whole: 3 entries" in signerd("audit", "verify", state=state).out


def test_a_lost_journal_is_begun_anew_on_the_persons_word_only(state):
    shutil.move(state / "journal.sqlite3", state / "elsewhere")
    declined = signerd("audit", "start-over", state=state, typed="n\n")
    assert declined.status == Exit.DECLINED
    assert (state / "journal.born").exists()
    assert "unknown here" in declined.out
    assert signerd("audit", "start-over", state=state, typed="y\n").status == Exit.OK
    with Journal(state, network=NETWORK, limits=Limits()) as journal:
        journal.note(Note("anew", "x"))
        assert journal.head()[0] == 1
