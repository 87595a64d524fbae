"""A backup beside whose chain something was changed (S35): anyone can encrypt to a public key, so whatever
comes back is refused with a sentence, or is what the chain and the stored PSBTs prove.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from custody.schemas.proposals import ProposalStatus
from signerd.backup.container import Backup
from signerd.backup.restoring import restore
from signerd.core.following import unfollowed_of
from signerd.errors import BackupUnreadable
from signerd.journal.storage import JOURNAL, migrate
from tests.support.backups import NOON, backup_of, open_one, remembering, write_last_entry
from tests.support.desk import CLAIM, VAULT
from tests.support.examples import examples
from tests.support.payments import shop

Change = Callable[[sqlite3.Connection], object]


def columns() -> list[tuple[str, str, str]]:
    """Every table and column of the schema, with its type."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        migrate(made)
        tables = [name for (name,) in made.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [(t, c[1], c[2]) for t in tables for c in made.execute(f"PRAGMA table_info({t})")]


COLUMNS = columns()
TABLES = sorted({table for table, _column, _type in COLUMNS})
# Rebuilt, emptied, or compared with the chain: what becomes of them does not rest on the chain's last entry.
PROVEN = (
    "apps",
    "origins",
    "spends",
    "outputs",
    "unfollowed_spends",
    "unfollowed_outputs",
    "heard",
    "signatures",
)


@cache
def honest() -> Backup:
    with TemporaryDirectory() as folder:
        state = remembering(Path(folder) / "s")
        with open_one(state) as journal:
            journal.learn(replace(CLAIM, signers=4))
            other = unfollowed_of(shop((5,), psbt_id="u-1", collected=1))
            code = VAULT.verification_code
            journal.hear(1, frozenset({code}), [(code, other)], "u-1")
            journal.replaced(shop((1,), 2_000, "p-9", replaces="p-1", status=ProposalStatus.CANCELLED))
        return backup_of(state)


def forged(backup: Backup, change: Change, *, writes_the_last_entry: bool) -> Backup:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as journal:
        journal.deserialize(backup.files[JOURNAL])
        journal.row_factory = sqlite3.Row
        journal.execute("PRAGMA foreign_keys = OFF")
        triggers = journal.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _sql in triggers:
            journal.execute(f"DROP TRIGGER {name}")
        change(journal)
        manifest = backup.manifest
        if writes_the_last_entry:
            manifest = manifest.model_copy(update={"head": write_last_entry(journal)})
        for _name, sql in triggers:
            journal.execute(sql)
        return Backup(manifest, {**backup.files, JOURNAL: journal.serialize()})


def restored(backup: Backup, folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every table of the journal that came back, but the chain."""
    assert restore(backup, folder / "new", lambda _found: True, now=lambda: NOON)
    with closing(sqlite3.connect(folder / "new" / JOURNAL)) as journal:
        return {t: sorted(journal.execute(f"SELECT * FROM {t}"), key=repr) for t in TABLES if t != "audit"}


def other_than(value: object, kind: str) -> object:
    if isinstance(value, int):
        return value + 1
    if isinstance(value, bytes):
        return value + b"\x00"
    if isinstance(value, str):
        return f"{value}x"
    return {"INTEGER": 7, "BLOB": b"\x07"}.get(kind, "7")


def altered(table: str, column: str, kind: str, row: int) -> Change:
    def change(journal: sqlite3.Connection) -> None:
        rows = journal.execute(f"SELECT * FROM {table}").fetchall()
        assume(rows)
        was = rows[row % len(rows)]
        named = " AND ".join(f"{name} IS ?" for name in was.keys())  # noqa: SIM118 - a row is no mapping
        try:
            query = f"UPDATE {table} SET {column} = ? WHERE {named}"
            journal.execute(query, (other_than(was[column], kind), *tuple(was)))
        except sqlite3.IntegrityError:
            reject()  # The schema refuses such a row.

    return change


def emptied(table: str) -> Change:
    return lambda journal: journal.execute(f"DELETE FROM {table}")


def added(table: str, marked: str) -> Change:
    """A row like one that is there, or a made-up one, with another value in one column."""

    def change(journal: sqlite3.Connection) -> None:
        names = [(column, kind) for of, column, kind in COLUMNS if of == table]
        like = journal.execute(f"SELECT * FROM {table} LIMIT 1").fetchone()
        values = [like[name] if like and name != marked else other_than(None, kind) for name, kind in names]
        try:
            journal.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(values))})", values)
        except sqlite3.IntegrityError:
            reject()

    return change


@st.composite
def changes(draw: st.DrawFn, tables: tuple[str, ...]) -> Change:
    table, column, kind = draw(st.sampled_from([one for one in COLUMNS if one[0] in tables]))
    return draw(
        st.sampled_from(
            [altered(table, column, kind, draw(st.integers(0, 3))), emptied(table), added(table, column)]
        )
    )


def is_refused_or_proven(forgery: Backup, folder: Path) -> None:
    with suppress(BackupUnreadable):
        assert restored(forgery, folder / "forged") == restored(honest(), folder / "honest")


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes(tuple(TABLES)))
def test_s35_whatever_was_changed_beside_the_chain_is_refused_or_proven(tmp_path_factory, change) -> None:
    forgery = forged(honest(), change, writes_the_last_entry=False)
    is_refused_or_proven(forgery, tmp_path_factory.mktemp("one"))


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes(PROVEN))
def test_s35_who_writes_the_chains_last_entry_too_gets_in_nobody_and_forgets_nothing(
    tmp_path_factory, change
) -> None:
    forgery = forged(honest(), change, writes_the_last_entry=True)
    is_refused_or_proven(forgery, tmp_path_factory.mktemp("one"))


DIFFER = "the chain and the rows differ"


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("DELETE FROM signatures", DIFFER),
        ("UPDATE signatures SET psbt = (SELECT psbt FROM proposals LIMIT 1)", DIFFER),
        ("UPDATE proposals SET psbt = (SELECT psbt FROM proposals WHERE psbt_id = 'p-3')", DIFFER),
        ("UPDATE proposals SET exported = psbt WHERE psbt_id = 'p-3'", DIFFER),
        ("CREATE TRIGGER quiet BEFORE INSERT ON signatures BEGIN SELECT RAISE(IGNORE); END", "tables"),
        ("CREATE VIEW v AS SELECT 1", "tables"),
        ("DROP INDEX proposals_by_identity", "tables"),
        ("PRAGMA user_version = 999", "version 999"),
        ("PRAGMA user_version = 0", "version 0"),
        ("UPDATE proposals SET state = 'elsewhere'", "cannot be read"),
        ("UPDATE pins SET descriptor = 'wsh()'", "cannot be"),
        ("UPDATE pins SET name = 'a' || char(10) || 'b'", "not one line of text"),
        ("UPDATE proposals SET snapshot = '{}'", "cannot be read"),
    ],
)
def test_s35_what_no_journal_of_ours_holds_is_refused_with_its_reason(tmp_path, statement, why) -> None:
    forgery = forged(honest(), lambda journal: journal.execute(statement), writes_the_last_entry=True)
    with pytest.raises(BackupUnreadable, match=why):
        restored(forgery, tmp_path)
    assert not (tmp_path / "new").exists()
