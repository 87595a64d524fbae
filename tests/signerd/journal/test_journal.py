"""Decide and record: what a decision changes is on the disk with its audit entry, or not at all."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from custody.schemas.proposals import ProposalStatus
from signerd.core import events
from signerd.core.audit import Note
from signerd.core.states import State
from signerd.core.values import Snapshot, Work
from signerd.errors import JournalCorrupted, JournalUnwritable, UnknownProposal
from signerd.journal import Journal
from tests.support.desk import (
    CLAIM,
    VAULT_ID,
    make_pin,
    open_journal,
    own_keys,
    prepared_journal,
    resumed,
    reviewed,
    signed_by,
    snapshot_of,
    spend,
)
from tests.support.wallets import ALICE, pay

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HONEST = snapshot_of(spend())


def open_one(folder: Path, **options: object) -> Journal:
    return open_journal(folder, **{"now": lambda: NOW, **options})


def prepared(folder: Path, **options: object) -> Journal:
    """A journal that knows Alice's keys and her pinned vault."""
    return prepared_journal(folder, **{"now": lambda: NOW, **options})


def to_signed(journal: Journal, snapshot: Snapshot = HONEST) -> None:
    psbt_id = snapshot.psbt_id
    journal.poll(snapshot)
    found = reviewed(journal, psbt_id)
    journal.decide(psbt_id, events.Approved(found.digest, found.to_acknowledge))
    journal.decide(psbt_id, events.DeviceFound("d"))
    journal.decide(psbt_id, events.DeviceReturned(signed_by(ALICE, snapshot)))


def test_everything_about_a_proposal_survives_a_restart(tmp_path):
    with prepared(tmp_path) as journal:
        to_signed(journal)
        journal.poll(snapshot_of(spend(n_inputs=3), "p-2"))
        journal.decide("p-2", events.PersonDeclined("no"))
        before = journal.records()
    with open_one(tmp_path) as journal:
        assert journal.records() == before
        assert [record.state for record in before] == [State.SIGNED, State.DECLINED]
        assert journal.pins() == (make_pin(),)
        assert journal.own_keys() == own_keys()


def test_an_alarm_stands_until_its_proposal_has_ended(tmp_path):
    altered = replace(HONEST, psbt=snapshot_of(spend(n_inputs=3)).psbt)
    with prepared(tmp_path) as journal:
        for snapshot in (HONEST, altered):
            journal.poll(snapshot)
        ((named, alarm),) = journal.alarms()
        assert (named, "another transaction" in alarm) == (HONEST.psbt_id, True)
        journal.decide(HONEST.psbt_id, events.PersonDeclined("no"))
        assert journal.alarms() == ()


def test_what_is_to_be_done_after_a_restart_follows_from_the_states(tmp_path):
    snapshots = [snapshot_of(spend(n_inputs=n), f"p-{n}") for n in range(1, 6)]
    with prepared(tmp_path) as journal:
        to_signed(journal, snapshots[0])
        for snapshot in snapshots[1:]:
            journal.poll(snapshot)
        for psbt_id in ("p-3", "p-4"):
            found = reviewed(journal, psbt_id)
            journal.decide(psbt_id, events.Approved(found.digest, found.to_acknowledge))
        journal.decide("p-4", events.DeviceFound("d"))
    with open_one(tmp_path) as journal:
        assert resumed(journal) == {"p-1": Work.SUBMIT, "p-3": Work.ASK_DEVICE}
        assert journal.record("p-4").state is State.INTERRUPTED


def test_an_unknown_proposal_is_said_to_be_unknown(journal):
    for ask in (journal.record, journal.ask_person):
        with pytest.raises(UnknownProposal, match="p-404"):
            ask("p-404")


def test_the_audit_tells_who_decided_what(journal):
    journal.poll(snapshot_of(spend(n_inputs=3), "p-2"))
    journal.decide("p-2", events.PersonDeclined("no", "page"))
    journal.poll(HONEST)
    digest = reviewed(journal, "p-1").digest
    journal.decide("p-1", events.Approved(digest, frozenset(), "app a1 'Ledger of Ours'"))
    told = {entry.note.kind: entry.note.facts for entry in journal.audit()}
    assert list(told) == ["registered", "vault-claim", "pinned", "received", "judged", "declined", "approved"]
    assert told["declined"] == {"reason": "no", "by": "page"}
    assert told["approved"] == {
        "acknowledged": [],
        "by": "app a1 'Ledger of Ours'",
        "digest": digest,
        "fee_sats": 1_000,
        "payments": [[pay(50_000).script_pubkey.hex(), 50_000]],
    }


def test_f_a_full_disk_stops_the_decision(tmp_path):
    with prepared(tmp_path) as journal:
        pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
        journal._db.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(JournalUnwritable, match="full"):
            journal.poll(snapshot_of(spend(n_inputs=100)))
        assert journal.records() == ()


def test_f_the_clock_set_back_does_not_break_the_chain(tmp_path):
    with prepared(tmp_path):
        pass
    with open_one(tmp_path, now=lambda: NOW.replace(year=2025)) as earlier:
        earlier.note(Note("test", "earlier"))
    with open_one(tmp_path) as journal:
        assert journal.head()[0] == 4


@pytest.mark.parametrize(
    ("signed", "status", "confirmations", "settled"),
    [
        (True, ProposalStatus.CONFIRMED, 5, False),
        (True, ProposalStatus.CONFIRMED, 6, True),
        # Of a message alone: a payment is settled by its blocks.
        (True, ProposalStatus.PROVEN, 0, False),
        (True, ProposalStatus.CANCELLED, 0, False),
        (False, ProposalStatus.CANCELLED, 0, True),
        (False, ProposalStatus.BROADCASTING, 0, False),
    ],
)
def test_what_is_settled_is_not_followed_any_more(journal, signed, status, confirmations, settled):
    if signed:
        to_signed(journal)
    else:
        journal.poll(HONEST)
    journal.poll(replace(HONEST, status=status, confirmations=confirmations))
    assert (journal.followed(1) == ()) is settled


def test_a_claim_is_news_once(journal):
    assert not journal.learn(CLAIM)
    renamed = replace(CLAIM, name="Renamed")
    assert journal.learn(renamed)
    assert journal.claims() == (renamed,)
    # A name is a label: no alarm, but it is told beside the proposals.
    assert journal.changes_of(make_pin()) == ()
    assert journal.review_context(snapshot_of(spend())).claim.name == "Renamed"


def test_a_pin_is_never_replaced(journal):
    with pytest.raises(JournalUnwritable):
        journal.add_pin(make_pin(), Note("pinned", VAULT_ID))


@pytest.mark.parametrize("column", ["state", "snapshot", "approval"])
def test_a_proposal_that_cannot_be_read_is_a_damaged_journal(tmp_path, column):
    with prepared(tmp_path) as journal:
        to_signed(journal)
    with closing(sqlite3.connect(tmp_path / "journal.sqlite3")) as connection, connection:
        connection.execute(f"UPDATE proposals SET {column} = '[0]'")
    connection.close()
    with pytest.raises(JournalCorrupted):
        open_one(tmp_path)
    assert len(list(tmp_path.glob("damaged-*/journal.sqlite3"))) == 1


# --- what was exported --------------------------------------------------------------------------------------


def to_exported(journal: Journal, snapshot: Snapshot = HONEST) -> None:
    journal.poll(snapshot)
    journal.decide(snapshot.psbt_id, events.Approved(reviewed(journal, snapshot.psbt_id).digest))
    journal.decide(snapshot.psbt_id, events.Exported())


def test_what_was_exported_survives_a_restart_and_is_found_by_its_transaction(tmp_path):
    with prepared(tmp_path) as journal:
        to_exported(journal)
        before = journal.records()
    with open_one(tmp_path) as journal:
        assert resumed(journal) == {}
        assert journal.records() == before
        assert journal.exports_of(before[0].identity) == before
        assert journal.exports_of("00" * 32) == ()


NEVER = (
    "UPDATE signatures SET psbt = x'00'",
    "DELETE FROM signatures",
    "UPDATE audit SET kind = 'x'",
    "DELETE FROM audit",
    "UPDATE proposals SET exported = NULL WHERE psbt_id = 'p-2'",
    "UPDATE proposals SET exported = x'00' WHERE psbt_id = 'p-2'",
    "DELETE FROM proposals WHERE psbt_id = 'p-2'",
)


def test_what_was_signed_exported_or_noted_is_neither_changed_nor_forgotten(journal):
    to_exported(journal, snapshot_of(spend(n_inputs=3), "p-2"))
    to_signed(journal)
    journal._db.execute("PRAGMA foreign_keys = OFF")
    for statement in NEVER:
        with pytest.raises(sqlite3.IntegrityError):
            journal._db.execute(statement)
