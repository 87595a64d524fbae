"""Journals of every earlier version are brought forward with all that they hold (F: journal from an older
version).
"""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from signerd.core import events
from signerd.core.audit import Note, first_fault, link
from signerd.core.claims import VaultClaim
from signerd.core.states import State
from signerd.core.values import Limits
from signerd.journal import Journal
from signerd.journal.keys import AtDevice
from signerd.journal.rows import audit_entries, write_entry
from signerd.journal.schema import MIGRATIONS, migrate
from signerd.journal.storage import BORN, JOURNAL
from tests.support.desk import CLAIM, NETWORK, VAULT, VAULT_ID, make_pin, own_keys, snapshot_of
from tests.support.payments import spend_of
from tests.support.wallets import ALICE, BOB, MALLORY, make_vault

VERSION_1 = Path(__file__).with_name("version_1.sql")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A state folder as the first version left it."""
    with closing(sqlite3.connect(tmp_path / JOURNAL)) as connection:
        connection.executescript(VERSION_1.read_text())
    (tmp_path / BORN).write_text("2026-01-02T03:04:05+00:00\n")
    return tmp_path


def version_of(folder: Path) -> int:
    with closing(sqlite3.connect(folder / JOURNAL)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_the_fixture_is_a_journal_of_the_first_version(folder: Path) -> None:
    assert version_of(folder) == 1
    with closing(sqlite3.connect(folder / JOURNAL)) as kept, closing(sqlite3.connect(":memory:")) as made:
        migrate(made, MIGRATIONS[:1])
        query = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
        assert kept.execute(query).fetchall() == made.execute(query).fetchall()


def test_a_journal_of_the_first_version_keeps_all_it_holds(folder: Path) -> None:
    with Journal(folder, network=NETWORK, limits=Limits()) as journal:
        assert journal.head()[0] == 12
        assert first_fault(journal.audit()) is None
        assert journal.pins() == (make_pin(),)
        assert journal.own_keys() == own_keys()
        assert journal.at_device(VAULT_ID) == AtDevice(enrolled=True)
        assert journal.claim(VAULT_ID) == VaultClaim(VAULT_ID, 1, "Treasury", VAULT.descriptor)
        assert [claim.vault_id for claim in journal.claims()] == ["vault-2", VAULT_ID]
        assert journal.vault_changes(VAULT_ID) == ()
        signed, waiting = journal.records()
        assert (signed.state, waiting.state) == (State.SIGNED, State.WAITING_PERSON)
        assert signed.signature is not None
    assert version_of(folder) == len(MIGRATIONS)


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_a_journal_of_every_earlier_version_becomes_one_of_today(folder: Path, version: int) -> None:
    with closing(sqlite3.connect(folder / JOURNAL, isolation_level=None)) as connection:
        migrate(connection, MIGRATIONS[:version])
    assert version_of(folder) == version
    with Journal(folder, network=NETWORK, limits=Limits()) as journal:
        assert len(journal.records()) == 2
        assert first_fault(journal.audit()) is None
    with closing(sqlite3.connect(folder / JOURNAL)) as kept, closing(sqlite3.connect(":memory:")) as made:
        migrate(made)
        query = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
        assert kept.execute(query).fetchall() == made.execute(query).fetchall()


def test_s6_when_something_was_signed_is_known_of_what_the_first_version_signed(folder: Path) -> None:
    with Journal(folder, network=NETWORK, limits=Limits()) as journal:
        (verdict,) = [v for v in journal.review("p-2").verdicts if v.name == "conflict"]
        assert "UTC you signed p-1, which pays" in verdict.sentence


def test_it_is_worked_on_as_one_of_today(folder: Path) -> None:
    with Journal(folder, network=NETWORK, limits=Limits()) as journal:
        assert journal.learn(CLAIM).effects == ()
        assert not journal.learn(CLAIM).news
        journal.decide("p-2", events.Approved(journal.review("p-2").digest, frozenset({"conflict"})))
        journal.learn(replace(CLAIM, descriptor=make_vault((ALICE, BOB, MALLORY)).descriptor))
        assert journal.record("p-2").state is State.REFUSED
        journal.unpin(VAULT_ID, Note("unpinned", VAULT_ID))
        assert first_fault(journal.audit()) is None


def test_s16_a_change_that_the_first_version_only_saw_is_an_alarm_at_the_next_look(folder: Path) -> None:
    changed = replace(CLAIM, descriptor=make_vault(threshold=1).descriptor)
    with closing(sqlite3.connect(folder / JOURNAL)) as connection:
        connection.execute(
            "UPDATE vault_claims SET descriptor = ? WHERE vault_id = ?", (changed.descriptor, VAULT_ID)
        )
        connection.commit()
    seen = replace(changed, threshold=None, signers=None, first_address=None)
    with Journal(folder, network=NETWORK, limits=Limits()) as journal:
        assert journal.learn(seen).effects
        assert journal.vault_changes(VAULT_ID)


def test_s26_what_an_earlier_version_signed_is_known_by_the_quorum_that_was_pinned_then(folder: Path) -> None:
    """Also where that one was unpinned since, and its id is another vault's now: the chain of decisions
    tells.
    """
    other = make_vault(account=1)
    with closing(sqlite3.connect(folder / JOURNAL, isolation_level=None)) as connection:
        migrate(connection, MIGRATIONS[:8])
        connection.row_factory = sqlite3.Row
        last = list(audit_entries(connection))[-1]
        unpinned = link(last.sequence + 1, last.at, Note("unpinned", VAULT_ID), last.digest)
        facts = {"code": other.verification_code, "descriptor": other.descriptor}
        pinned = link(unpinned.sequence + 1, last.at, Note("pinned", VAULT_ID, facts), unpinned.digest)
        for entry in (unpinned, pinned):
            write_entry(connection, entry)
        connection.execute(
            "UPDATE pins SET descriptor = ?, own_key = ?", (other.descriptor, str(own_keys()[1].key))
        )
    with Journal(folder, network=NETWORK, limits=Limits()) as journal:
        quorums = {row["psbt_id"]: row["quorum"] for row in journal._db.execute("SELECT * FROM proposals")}
        assert quorums == {"p-1": VAULT.verification_code, "p-2": other.verification_code}
        assert journal.pinned_codes() == {VAULT_ID: {VAULT.verification_code, other.verification_code}}
        # The quorum comes back under another id: what was signed of it is remembered.
        journal.learn(replace(CLAIM, vault_id="vault-9"))
        journal.add_pin(replace(make_pin(), vault_id="vault-9"), Note("pinned", "vault-9"))
        journal.poll(snapshot_of(spend_of((9,), (("shop", 50_000),)), "p-9", vault_id="vault-9"))
        assert "paid-twice" in journal.review("p-9").to_acknowledge


def test_s26_where_the_chain_does_not_tell_of_a_pin_it_is_compared_with_every_vault(folder: Path) -> None:
    with closing(sqlite3.connect(folder / JOURNAL, isolation_level=None)) as connection:
        migrate(connection, MIGRATIONS[:8])
        connection.execute("UPDATE proposals SET vault_id = 'vault-gone' WHERE psbt_id = 'p-1'")
    with Journal(folder, network=NETWORK, limits=Limits()) as journal:
        journal.poll(snapshot_of(spend_of((9,), (("shop", 50_000),)), "p-9"))
        assert "paid-twice" in journal.review("p-9").to_acknowledge


def test_a_change_that_waits_to_be_looked_at_is_kept(folder: Path) -> None:
    with closing(sqlite3.connect(folder / JOURNAL, isolation_level=None)) as connection:
        migrate(connection, MIGRATIONS[:8])
        connection.execute("INSERT INTO vault_changes VALUES (?, 'mark', '[\"Changed.\"]')", (VAULT_ID,))
    with Journal(folder, network=NETWORK, limits=Limits()) as journal:
        assert journal.vault_changes(VAULT_ID) == ("Changed.",)
