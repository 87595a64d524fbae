"""get-logs and export-audit-logs, over HTTP."""

import csv
import io
from collections.abc import Iterator

import pytest
from sqlalchemy import delete, update

from custody.server.audit import calls as logs
from custody.server.rules.audit import Category, ChainedRow, Event, restore, write_csv
from custody.server.rules.credentials import Caller
from custody.server.store.models import AuditEventRow, RolePermissionRow
from custody.server.vaults.stored import place_of
from multisig.canonical_json import canonical_json
from tests.support.custody import ok, refused
from tests.support.platform import As, World

LOGS, EXPORT = "/api/v1/get-logs", "/api/v1/export-audit-logs"
HERE = {"org_uid": 1, "workspace_uid": 1}


def append(
    world: World, *descriptions: str, category: Category = Category.KEYS, action: str = "TRIED"
) -> None:
    services, caller = world.platform.services, Caller(1, 1, "alice@example.org", "t")
    with services.store.write() as db:
        place = place_of(db, 1)
        for description in descriptions:
            tried = Event(action, "// {text}", category)
            services.tools.audit.record(db, caller, tried, place, text=description)


def rows_of(text: str) -> list[dict]:
    """As they were recorded: a hash, too, may have an apostrophe before it."""
    rows = csv.DictReader(io.StringIO(text, newline=""))
    return [{name: restore(cell) for name, cell in row.items()} for row in rows]


class TestPage:
    def test_a_reader_who_follows_the_cursor_sees_each_row_once_while_others_are_written(
        self, world: World, alice: As
    ) -> None:
        append(world, *(f"row {number}" for number in range(7)))
        seen, cursor = [], None
        while True:
            place = {"cursor": cursor} if cursor else {}
            page = ok(alice.get(LOGS, **HERE, page_size=3, category="KEYS", **place))
            seen += [entry["description"] for entry in page["logs"]]
            if len(seen) < 9:
                append(world, f"late {len(seen)}")
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert seen == [*(f"row {number}" for number in range(7)), "late 3", "late 6"]

    def test_days_are_whole_and_in_utc(self, world: World, alice: As) -> None:
        world.clock.now = world.clock.now.replace(day=9, hour=23, minute=59, second=59, microsecond=999_000)
        append(world, "the ninth's last")
        world.clock.advance(milliseconds=1)
        append(world, "the tenth's first")
        alice = world.as_user("alice@example.org")

        def found(**days: str) -> list[str]:
            page = ok(alice.get(LOGS, **HERE, category="keys", **days))
            return [each["description"] for each in page["logs"]]

        assert found(from_day="2026-03-10") == ["the tenth's first"]
        assert found(to_day="2026-03-09") == ["the ninth's last"]
        assert len(found(from_day="2026-03-09", to_day="2026-03-10")) == 2
        assert len(found(from_day="0001-01-01", to_day="9999-12-31")) == 2

    def test_names_are_looked_up_for_so_many_ids_whoever_wrote_them(
        self, world: World, alice: As, monkeypatch
    ) -> None:
        """A row that was altered may hold ids without end; who acted comes first."""
        append(world, "role 1")
        facts = canonical_json({"roles": [*range(90, 2, -1), 1], "role": "1 or more", "user": {"role": 2}})
        with world.platform.services.store.write() as db:
            altered = update(AuditEventRow).where(AuditEventRow.action == "TRIED")
            db.execute(altered.values(facts=facts.decode()))
        row = {**HERE, "order": "newest", "page_size": 1}
        names = {"user 1": "alice@example.org", "role 1": "Administrator"}
        assert ok(alice.get(LOGS, **row))["names"] == names
        monkeypatch.setattr(logs.wire, "MAX_NAMES", 89)
        assert ok(alice.get(LOGS, **row))["names"] == {"user 1": "alice@example.org"}

    def test_what_cannot_be_asked_is_said(self, alice: As) -> None:
        for query, sentence in (
            ({"from_day": "2026-02-30"}, "day"),
            ({"to_day": "1700000000"}, "a day is written YYYY-MM-DD"),
            ({"from_day": "2026-03-02", "to_day": "2026-03-01"}, "first day is later than the last"),
            ({"category": "KEY"}, "There is no category KEY; there are SIGN_IN"),
            ({"page": 2, "cursor": "5"}, "Give page or cursor"),
        ):
            assert sentence in refused(alice.get(LOGS, **HERE, **query), 422, "VALIDATION")["detail"]


@pytest.mark.parametrize("path", [LOGS, EXPORT])
class TestWhoMayRead:
    def test_a_members_attempt_is_seen_by_the_workspaces_own_auditors(
        self, world: World, alice: As, bob: As, path: str
    ) -> None:
        answer = bob.get(path, **HERE)
        (entry,) = ok(alice.get(LOGS, **HERE, category="ACCESS"))["logs"]
        tried = f"tried to {path}, and was refused: they have no permission for it; GET"
        assert (entry["action"], entry["user_name"]) == ("PERMISSION_DENIED", "bob@example.org")
        assert (entry["description"], entry["role_uid"]) == (tried, "2")
        assert entry["trace_id"] == answer.headers["X-Trace-Id"]

    def test_a_strangers_attempt_is_not(self, alice: As, eve: As, path: str) -> None:
        """P24: nor can a user fill the log of a workspace without being a member."""
        before = ok(alice.get(LOGS, **HERE))["total"]
        for org_uid, workspace_uid in ((1, 1), (2, 1), (1, 2)):
            assert eve.get(path, org_uid=org_uid, workspace_uid=workspace_uid).status_code in {403, 404}
        assert ok(alice.get(LOGS, **HERE))["total"] == before

    def test_the_organisation_named_must_be_ones_own(
        self, world: World, alice: As, eve: As, path: str
    ) -> None:
        """The same answer whether there is such an organisation or not; the attempt is recorded."""
        for org_uid in (2, 99):
            refused(alice.get(path, org_uid=org_uid, workspace_uid=1), 403, "NOT_ORG_MEMBER")
        assert world.audit_actions("workspace:1").count("NOT_ORG_MEMBER") == 2
        world.member(2, "alice@example.org")
        refused(alice.get(path, org_uid=2, workspace_uid=1), 404, "NOT_FOUND")


class TestExport:
    def test_says_what_was_asked_for_and_agrees_with_the_pages(self, world: World, alice: As) -> None:
        ok(alice.get(EXPORT, **HERE, from_day="2026-03-01", to_day="2026-03-02", category="KEYS"))
        last = ok(alice.get(LOGS, **HERE))["logs"][-1]
        days = "from 2026-03-01, to 2026-03-02"
        assert last["description"] == f"exported the audit log: 0 rows, {days}, category KEYS"
        append(world, "a", "b")
        entries = ok(alice.get(LOGS, **HERE))["logs"]
        exported = rows_of(ok(alice.get(EXPORT, **HERE))["csv"])
        assert exported[-1]["facts"] == '{"text":"b"}'
        assert [{**row, "user_uuid": int(row["user_uuid"])} for row in exported] == [
            {**entry, "position": str(place), "facts": row["facts"]}
            for place, (entry, row) in enumerate(zip(entries, exported, strict=True), start=1)
        ]

    def test_too_much_is_refused_with_what_to_do(
        self, world: World, alice: As, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(logs, "MAX_EXPORT_ROWS", 10)
        append(world, *(f"row {number}" for number in range(10)))
        world.clock.advance(days=1)
        append(world, "today's")
        alice = world.as_user("alice@example.org")
        problem = refused(alice.get(EXPORT, **HERE), 422, "VALIDATION")
        assert "one export holds at most 10: name fewer days" in problem["detail"]
        today = world.clock.now.date().isoformat()
        assert len(rows_of(ok(alice.get(EXPORT, **HERE, from_day=today))["csv"])) == 1
        assert ok(alice.get(LOGS, **HERE, category="AUDIT"))["total"] == 1

    def test_is_refused_to_a_member_who_lost_the_permission_meanwhile(
        self, world: World, alice: As, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """P23."""

        def taken_away(rows: Iterator[ChainedRow]) -> Iterator[str]:
            with world.platform.services.store.write() as db:
                db.execute(delete(RolePermissionRow).where(RolePermissionRow.permission == "VIEW_LOGS"))
            return write_csv(rows)

        monkeypatch.setattr(logs.audit, "write_csv", taken_away)
        refused(alice.get(EXPORT, **HERE), 403, "PERMISSION_DENIED")
        assert "EXPORTED" not in world.audit_actions("workspace:1")

    def test_one_person_makes_one_at_a_time(self, world: World, alice: As) -> None:
        with world.platform.services.rates.export(1):
            refused(alice.get(EXPORT, **HERE), 429, "RATE_LIMITED")
        ok(alice.get(EXPORT, **HERE))
