"""P42 against an attacker who can write the whole database, heads too: checkpoints show what the chain
alone cannot.
"""

import secrets
import stat
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete, insert, update

from custody.server.audit.checkpoints import CannotCheckpoint, Checkpoints
from custody.server.audit.log import AuditLog, chained_rows
from custody.server.audit.verification import Report, check_everything, read_through
from custody.server.rules.audit import GENESIS, Category, Event, event_hash
from custody.server.rules.checkpoints import public_key_of
from custody.server.rules.credentials import PLATFORM, Caller
from custody.server.secrets import Purpose, Secrets
from custody.server.store import Store
from custody.server.store.models import AuditEventRow, AuditHeadRow
from custody.server.vaults.stored import place_of
from tests.support.platform import Clock, open_world

CALLER = Caller(7, 1, "alice@example.org", "trace")
TRIED = Event("TRIED", "// {text}", Category.KEYS)


class Bench:
    """A log, its checkpoints, and hands in the database."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store, self.folder, self.clock = store, folder, Clock()
        self.secrets = Secrets(folder / "secrets.json", secrets.token_bytes)
        self.path = folder / "checkpoints.jsonl"
        self.checkpoints = self.another()

    def another(self, name: str = "checkpoints.jsonl") -> Checkpoints:
        audit = AuditLog(self.clock, secrets.token_bytes)
        return Checkpoints(
            self.store, self.clock, secrets.token_bytes, audit, self.secrets, self.folder / name
        )

    def append(self, *descriptions: str, organisation_id: int | None = None) -> None:
        log = AuditLog(self.clock, secrets.token_bytes)
        with self.store.write() as db:
            for description in descriptions:
                log.record(db, CALLER, TRIED, None, None, organisation_id, text=description)

    def execute(self, *statements) -> None:
        with self.store.write() as db:
            for statement in statements:
                db.execute(statement)

    def rewrite(self, chain_id: str, edit: Callable[[list[str]], list[str]]) -> None:
        """The whole chain anew, consistently: descriptions as `edit` says, every hash made again, the head
        too.
        """
        with self.store.write() as db:
            rows = list(chained_rows(db, AuditEventRow.chain_id == chain_id))
            described = edit([chained.row.description for chained in rows])
            db.execute(delete(AuditEventRow).where(AuditEventRow.chain_id == chain_id))
            previous = GENESIS
            for position, description in enumerate(described, start=1):
                row = replace(
                    rows[min(position, len(rows)) - 1].row, position=position, description=description
                )
                row = replace(row, event_uid=f"{chain_id}{position}") if position > len(rows) else row
                hashed = event_hash(previous, row)
                values = {**vars(row), "prev_hash": previous, "event_hash": hashed}
                db.add(AuditEventRow(**values))
                previous = hashed
            head = db.get_one(AuditHeadRow, chain_id)
            head.size, head.head_hash = len(described), previous
        assert read_through(self.store).findings == (), "the database alone shows nothing"

    def check(self, *files: Path, trusted: frozenset[str] | None = None) -> Report:
        keys = frozenset(self.checkpoints.public_keys()) if trusted is None else trusted
        return check_everything(self.store, files or (self.path,), keys)

    def found(self, *files: Path) -> list[str]:
        return [f"{each.where} {each.place}: {each.sentence}" for each in self.check(*files).findings]

    def lines(self) -> list[bytes]:
        return self.path.read_bytes().splitlines(keepends=True)


@pytest.fixture
def bench(store: Store, tmp_path: Path) -> Bench:
    """Two checkpoints: the platform's chain at row 3, and (with the first one's record) at row 6;
    organisation 3's at 2.
    """
    bench = Bench(store, tmp_path)
    bench.append("a", "b", "c")
    bench.append("x", "y", organisation_id=3)
    assert bench.checkpoints.make() is not None
    bench.append("d", "e")
    assert bench.checkpoints.make() is not None
    return bench


class TestMaking:
    def test_everything_agrees(self, bench: Bench) -> None:
        """P49: the file is nobody else's to read, and holds no secret."""
        assert bench.check() == Report(chains=2, rows=9, checkpoints=2, findings=())
        assert stat.S_IMODE(bench.path.stat().st_mode) == 0o600
        (secret,) = bench.secrets.of(Purpose.CHECKPOINT)
        text = bench.path.read_bytes()
        assert secret.hex().encode() not in text
        assert public_key_of(secret).encode() in text

    def test_comes_when_it_is_due_and_not_where_nothing_was_recorded_but_the_last_one(
        self, bench: Bench
    ) -> None:
        assert bench.checkpoints.make() is bench.another().make() is None
        assert len(bench.lines()) == 2
        bench.append("f")
        assert [bench.checkpoints.run_due(), bench.checkpoints.run_due()] == [1, 0]
        for minutes, made in ((9, 0), (1, 1)):
            bench.append("g")
            bench.clock.advance(minutes=minutes)
            assert bench.checkpoints.run_due() == made
        bench.append("h")
        bench.clock.now -= timedelta(days=1)
        assert bench.checkpoints.run_due() == 1, "a clock that was set back does not stop them"
        assert bench.found() == []

    def test_servers_that_share_a_file_take_turns_and_cut_off_what_a_power_cut_tore(
        self, bench: Bench
    ) -> None:
        other = bench.another()
        for maker in (other, bench.checkpoints, other):
            bench.append("by turns")
            assert maker.make() is not None
        with bench.path.open("ab") as file:
            file.write(bench.lines()[1][:50])
        bench.append("f")
        assert bench.found() == []
        assert bench.another().make() is not None
        assert (bench.check().checkpoints, bench.found()) == (6, [])

    def test_a_crash_after_the_line_and_before_its_record_loses_nothing(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def crash(*_args: object, **_more: object) -> None:
            raise KeyboardInterrupt

        bench.append("f")
        monkeypatch.setattr(bench.checkpoints.audit, "record", crash)
        with pytest.raises(KeyboardInterrupt):
            bench.checkpoints.make()
        assert bench.found() == []
        assert len(bench.lines()) == 3
        bench.append("g")
        assert bench.another().make() is not None
        assert bench.found() == []

    def test_a_file_that_cannot_be_written_stops_no_other_work(self, bench: Bench) -> None:
        bench.append("f")
        bench.path.unlink()
        bench.path.mkdir()
        assert bench.another().run_due() == 0

    @pytest.mark.parametrize(
        ("chain_id", "edit"),
        [("platform", lambda rows: rows[:4]), ("organisation:3", lambda rows: ["forged", *rows[1:], "more"])],
        ids=["cut", "rewritten"],
    )
    def test_a_chain_cut_or_rewritten_is_not_signed_again(self, bench: Bench, chain_id, edit) -> None:
        bench.rewrite(chain_id, edit)
        with pytest.raises(CannotCheckpoint, match=f"{chain_id}.*was cut or rewritten"):
            bench.checkpoints.make()
        assert bench.another().run_due() == 0
        assert len(bench.lines()) == 2

    @pytest.mark.parametrize(
        "head",
        [
            insert(AuditHeadRow).values(chain_id="workspace:0", size=1, head_hash=GENESIS),
            update(AuditHeadRow).values(size=2**60),
            update(AuditHeadRow).values(head_hash=b""),
        ],
        ids=["no such chain", "no such size", "no hash"],
    )
    def test_a_head_that_is_none_is_not_signed_and_stops_no_other_work(self, bench: Bench, head) -> None:
        bench.execute(head)
        with pytest.raises(CannotCheckpoint, match="is malformed"):
            bench.checkpoints.make()
        assert bench.another().run_due() == 0


class TestDatabase:
    """An attacker with the whole database changes a row and computes every hash again."""

    def test_a_cut_tail(self, bench: Bench) -> None:
        """Then with the head left, and with the head rewritten."""
        bench.rewrite("platform", lambda rows: rows[:5])
        said = "checkpoint 2 of 2026-03-01T12:00:00.000Z names 6 rows"
        assert f"platform 6: the chain was cut after row 5: {said}" in bench.found()
        bench.execute(
            delete(AuditEventRow).where(AuditEventRow.chain_id == "platform", AuditEventRow.position > 4)
        )
        assert "platform 5: the chain should have 5 rows but ends after 4" in bench.found()

    def test_a_chain_rewritten_from_its_start(self, bench: Bench) -> None:
        """Or in its middle."""
        for edit, first, last, number in (
            (lambda rows: [*rows[:4], "forged", *rows[5:]], 4, 6, 2),
            (lambda rows: ["forged", *rows[1:]], 1, 3, 1),
        ):
            bench.rewrite("platform", edit)
            assert bench.found()[0].startswith(
                f"platform {first}: the chain was rewritten somewhere from row {first} to row {last}: "
                f"checkpoint {number} of"
            )

    def test_a_whole_chain_that_is_gone(self, bench: Bench) -> None:
        bench.execute(
            delete(AuditEventRow).where(AuditEventRow.chain_id == "organisation:3"),
            delete(AuditHeadRow).where(AuditHeadRow.chain_id == "organisation:3"),
        )
        (finding,) = bench.found()
        assert finding.startswith("organisation:3 1: the whole chain is gone: checkpoint 1 of")


class TestFile:
    def test_a_last_line_that_was_cut_in_half_or_off(self, bench: Bench) -> None:
        for left in (bench.path.read_bytes()[:-40], bench.lines()[0]):
            bench.path.write_bytes(left)
            said = "the file was cut: the audit log names checkpoint 2 of it"
            assert bench.found() == [f"{bench.path} 2: {said}"]

    def test_a_file_that_is_gone(self, bench: Bench) -> None:
        """A new one begins by itself; the log still names the old, which may be given beside it."""
        series = bench.checkpoints._known[1].id
        old = bench.path.rename(bench.path.with_suffix(".old"))
        bench.append("f")
        assert bench.checkpoints.make() is not None
        assert bench.found(old, bench.path) == []
        (finding,) = bench.found()
        assert finding == (
            f"checkpoints {series[:16]} 0: the audit log names 2 checkpoints of it, "
            "and no given file contains them"
        )

    def test_a_copy_elsewhere_shows_what_was_cut_from_both(self, bench: Bench, tmp_path: Path) -> None:
        """Database and file taken back together to the first checkpoint, consistently: only a copy knows."""
        copy = tmp_path / "copy.jsonl"
        copy.write_bytes(bench.path.read_bytes())
        bench.append("f")
        assert bench.checkpoints.make() is not None
        assert bench.found(copy, bench.path) == bench.found(bench.path, copy) == [], "one history so far"
        bench.path.write_bytes(bench.lines()[0])
        bench.rewrite("platform", lambda rows: rows[:4])
        assert bench.found() == []
        assert "platform 5: the chain was cut after row 4" in bench.found(bench.path, copy)[0]

    def test_a_file_that_was_cut_or_damaged_is_not_written_on(self, bench: Bench) -> None:
        """Else the next line would take the lost one's place, and what that one vouched for could be
        rewritten.
        """
        bench.path.write_bytes(bench.lines()[0])
        for maker in (bench.checkpoints, bench.another()):
            with pytest.raises(CannotCheckpoint, match="was cut: the audit log names checkpoint 2"):
                maker.make()
        assert len(bench.lines()) == 1
        bench.path.write_bytes(b"{}\n" + bench.lines()[0])
        with pytest.raises(CannotCheckpoint, match="Line 1 of the checkpoints is not a checkpoint"):
            bench.another().make()

    def test_a_line_that_took_a_lost_ones_place(
        self, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By a program that does not ask: the log names both, and a copy has the other."""
        copy = tmp_path / "copy.jsonl"
        copy.write_bytes(bench.path.read_bytes())
        bench.path.write_bytes(bench.lines()[0])
        bench.clock.advance(seconds=1)
        monkeypatch.setattr("custody.server.audit.checkpoints._check_not_cut", lambda _db, _series: None)
        assert bench.another().make() is not None
        assert bench.found() == [f"{bench.path} 2: the audit log names another checkpoint with this number"]
        assert f"{copy} 2: {bench.path} has another line there: two histories were signed" in (
            bench.found(bench.path, copy)
        )


def test_p59_a_checkpoint_comes_with_the_hundredth_row_and_at_the_stop(tmp_path: Path) -> None:
    with open_world(tmp_path / "state") as world:
        world.organisation("Acme", "alice@example.org")
        background, log = world.platform.background, world.platform.services.tools.audit
        checkpoints = background.checkpoints

        def append(count: int) -> None:
            with world.platform.services.store.write() as db:
                for _ in range(count):
                    log.record(db, PLATFORM, TRIED, place_of(db, 1), text="")

        assert checkpoints.run_due() == 1
        append(99)
        assert checkpoints.run_due() == 0
        append(1)
        assert checkpoints.run_due() == 1
        append(1)
        lines = len(checkpoints.path.read_bytes().splitlines())
        with background.running():
            pass
        assert len(checkpoints.path.read_bytes().splitlines()) > lines
        assert checkpoints.make() is None, "nothing is left unsigned"
        other = Checkpoints(
            world.platform.services.store,
            world.clock,
            world.platform.services.tools.random,
            log,
            world.platform.services.tools.secrets,
            checkpoints.path.with_name("another"),
        )
        append(1)
        other.at_stop()
        assert not other.path.exists(), "a process that never signed begins no file of its own"
