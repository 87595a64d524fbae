"""The state folder is ours alone, and one daemon's at a time (L12). A damaged or missing journal is reported
and kept, never silently replaced (F: journal corrupted, older, newer; two daemons started at once).
"""

import json
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from signerd.core.audit import Note, first_fault
from signerd.errors import (
    AlreadyConfigured,
    AlreadyRunning,
    JournalCorrupted,
    JournalTooNew,
    JournalUnwritable,
    UnsafeFolder,
)
from signerd.journal import storage
from signerd.journal.storage import (
    BORN,
    CHECKED,
    JOURNAL,
    VERSION,
    check_whole,
    held,
    open_journal,
    start_over,
)
from tests.signerd.journal.test_journal import NOW, open_one


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with open_one(tmp_path) as journal:
        for number in range(200):
            journal.note(Note("test", f"entry {number}", {"filler": "x" * 300}))
    return tmp_path


def test_it_syncs_fully_writes_ahead_and_keeps_few_pages_in_memory(folder: Path) -> None:
    connection, _is_whole = open_journal(folder, NOW)
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2
    assert connection.execute("PRAGMA cache_size").fetchone()[0] == -256
    connection.close()


def damage_header(data: bytes) -> bytes:
    return b"\x00" * 100 + data[100:]


def damage_pages(data: bytes) -> bytes:
    pages = [data[at : at + 4096] for at in range(0, len(data), 4096)]
    return b"".join([*pages[:2], *(b"\xff" * 8 + page[8:] for page in pages[2:])])


BYTES = {
    "header": damage_header,
    "pages": damage_pages,
    "cut": lambda data: data[:5000],
    "empty": lambda _data: b"",
}


@pytest.mark.parametrize("damage", [*BYTES, "an entry"])
def test_a_damaged_journal_is_set_aside_and_reported(folder: Path, damage: str) -> None:
    path = folder / JOURNAL
    if damage in BYTES:
        path.write_bytes(BYTES[damage](path.read_bytes()))
    else:
        alter(folder, 7)
    damaged = path.read_bytes()
    with pytest.raises(JournalCorrupted, match="set aside"):
        open_one(folder)
    (kept,) = folder.glob("damaged-*")
    assert (kept / JOURNAL).read_bytes() == damaged
    # Starting again does not pretend that nothing happened.
    with pytest.raises(JournalCorrupted, match="gone"):
        open_one(folder)


def test_a_deleted_journal_is_reported(folder: Path) -> None:
    (folder / JOURNAL).unlink()
    with pytest.raises(JournalCorrupted, match="gone"):
        open_one(folder)


def test_starting_over_is_the_persons_word(folder: Path) -> None:
    with pytest.raises(AlreadyConfigured):
        start_over(folder)
    (folder / JOURNAL).write_bytes(b"")
    with pytest.raises(JournalCorrupted):
        open_one(folder)
    start_over(folder)
    (kept,) = folder.glob("damaged-*")
    assert (kept / JOURNAL).exists()
    with open_one(folder) as journal:
        assert journal.head()[0] == 0
    assert (folder / BORN).exists()


def test_a_kill_while_the_first_journal_is_made_is_no_loss(tmp_path: Path) -> None:
    (tmp_path / f"{JOURNAL}.new").write_bytes(b"half")
    with open_one(tmp_path) as journal:
        assert journal.head()[0] == 0


def written_ahead(folder: Path) -> tuple[dict[str, bytes], list[int]]:
    """The files of a journal whose entries all stand in its log, and where in the log each one's
    commit ends.
    """
    folder.mkdir()
    log, ends = folder / f"{JOURNAL}-wal", []
    with open_one(folder) as writer:
        for number in range(5):
            writer.note(Note("test", f"entry {number}"))
            ends.append(log.stat().st_size)
        files = {name: (folder / name).read_bytes() for name in (BORN, JOURNAL, log.name)}
    return files, ends


@pytest.mark.parametrize("torn", ["cut", "noise"])
def test_f_power_loss_at_any_byte_of_the_log_keeps_a_whole_chain(tmp_path: Path, torn: str) -> None:
    """Wherever the log ends, or turns into noise: what was committed before that place stays, and nothing
    else.
    """
    files, ends = written_ahead(tmp_path / "live")
    log = files.pop(f"{JOURNAL}-wal")
    assert ends == sorted(set(ends))
    assert ends[-1] == len(log)
    for place in sorted({0, 31, 32, *ends, *(end - 1 for end in ends), *range(100, len(log), 3_001)}):
        folder = tmp_path / str(place)
        folder.mkdir()
        for name, data in files.items():
            (folder / name).write_bytes(data)
        noise = b"" if torn == "cut" else b"\xa5" * (len(log) - place)
        (folder / f"{JOURNAL}-wal").write_bytes(log[:place] + noise)
        with open_one(folder) as journal:
            whole = sum(end <= place for end in ends)
            assert [e.note.subject for e in journal.audit()] == [f"entry {n}" for n in range(whole)]
            assert first_fault(journal.audit()) is None


@pytest.fixture
def checked(folder: Path) -> Path:
    """A journal that was checked up to its 200th entry, and has fifty more."""
    assert check_whole(folder, lambda: False) is None
    with open_one(folder) as journal:
        assert not journal.is_checked
        for number in range(200, 250):
            journal.note(Note("test", f"entry {number}", {"filler": "x" * 300}))
    return folder


def alter(folder: Path, sequence: int) -> None:
    with closing(sqlite3.connect(folder / JOURNAL)) as connection, connection:
        connection.execute("DROP TRIGGER audit_stays")
        connection.execute("UPDATE audit SET subject = 'another' WHERE sequence = ?", (sequence,))
        connection.execute(
            "CREATE TRIGGER audit_stays BEFORE UPDATE ON audit\n"
            "BEGIN SELECT RAISE(ABORT, 'an audit entry never changes'); END"
        )


@pytest.mark.parametrize("sequence", [201, 225, 250])
def test_s34_a_start_checks_the_chain_from_where_it_was_checked(checked: Path, sequence: int) -> None:
    alter(checked, sequence)
    with pytest.raises(JournalCorrupted, match=f"entry {sequence} was changed"):
        open_one(checked)


@pytest.mark.parametrize("sequence", [1, 100, 199])
def test_s34_what_is_older_is_checked_afterwards_and_stops_the_next_start(
    checked: Path, sequence: int
) -> None:
    alter(checked, sequence)
    open_one(checked).close()
    assert f"entry {sequence} was changed" in str(check_whole(checked, lambda: False))
    with pytest.raises(JournalCorrupted, match=f"entry {sequence} was changed"):
        open_one(checked)


def test_s34_how_far_another_journal_was_checked_counts_for_nothing(checked: Path) -> None:
    sequence, _ = json.loads((checked / CHECKED).read_bytes())
    (checked / CHECKED).write_text(json.dumps([sequence, "ff" * 32]))
    alter(checked, 100)
    with pytest.raises(JournalCorrupted, match="entry 100 was changed"):
        open_one(checked)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"[1]", b'[200, "00"]', b'["x", "y"]', b"[999, null]", b"\xff"]
)
def test_without_a_true_word_of_a_check_everything_is_checked(checked: Path, content: bytes) -> None:
    alter(checked, 1)
    (checked / CHECKED).write_bytes(content)
    with pytest.raises(JournalCorrupted, match="entry 1 was changed"):
        open_one(checked)


def test_a_daemon_that_stops_ends_the_check(checked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alter(checked, 1)
    monkeypatch.setattr(storage, "_STEPS_BETWEEN", 1)
    assert check_whole(checked, lambda: True) is None
    assert (checked / CHECKED).exists()


def test_a_newer_journal_is_not_touched(folder: Path) -> None:
    connection = sqlite3.connect(folder / JOURNAL)
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    with pytest.raises(JournalTooNew):
        open_one(folder)
    assert not list(folder.glob("damaged-*"))


def test_the_marker_is_written_where_a_kill_left_it_out(folder: Path) -> None:
    (folder / BORN).unlink()
    open_one(folder).close()
    assert (folder / BORN).exists()


def test_a_journal_that_another_program_holds_is_not_taken_for_damaged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "BUSY_SECONDS", 0.0)
    other = sqlite3.connect(folder / JOURNAL, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(JournalUnwritable, match="locked"):
        open_one(folder)
    other.close()
    assert list(folder.glob("damaged-*")) == []
    with open_one(folder) as journal:
        assert journal.head()[0] == 200


def test_two_daemons_on_one_folder_cannot_start(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with held(path):
        with pytest.raises(AlreadyRunning):
            held(path).__enter__()
        other = (
            "from pathlib import Path; from signerd.journal import held; "
            f"held(Path({str(path)!r})).__enter__()"
        )
        second = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True, check=False)
        assert "AlreadyRunning" in second.stderr
    with held(path):
        pass


def test_l12_a_folder_open_to_others_and_a_link_in_its_or_the_locks_place_are_refused(tmp_path: Path) -> None:
    for name, mode in (("open", 0o755), ("real", 0o700), ("locked", 0o700)):
        (tmp_path / name).mkdir(mode=mode)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "locked" / "lock").symlink_to(tmp_path / "elsewhere")
    for name, words in (("open", "755"), ("link", "link"), ("locked", "")):
        with pytest.raises(UnsafeFolder) as refused:
            held(tmp_path / name).__enter__()
        assert words in str(refused.value)
    made = tmp_path / "a" / "b"
    with held(made):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700
