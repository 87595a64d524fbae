"""``custody audit`` as an operator and an auditor use it: words, JSON and exit codes
(docs/operate/audit.md).
"""

import csv
import json
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import update

from custody.common.terminal import Exit
from custody.server.store import Store, sqlite_url
from custody.server.store.models import AuditEventRow
from tests.support.custody import ok
from tests.support.operator import custody
from tests.support.platform import open_world

audit = partial(custody, "audit")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A platform with some rows in two chains, and an export of the workspace's."""
    folder = tmp_path / "state"
    with open_world(folder) as world:
        world.organisation("Acme", "alice@example.org")
        alice = world.as_user("alice@example.org")
        world.member(1, "bob@example.org")
        text = ok(alice.get("/api/v1/export-audit-logs", org_uid=1, workspace_uid=1))["csv"]
        (tmp_path / "export.csv").write_text(text, newline="", encoding="utf-8")
    return folder


@pytest.fixture
def export(state: Path) -> Path:
    return state.parent / "export.csv"


@pytest.mark.parametrize("chain", ["workspace:9", "wrkspace:1", ""])
def test_a_chain_that_is_not_there_is_no_empty_file(state: Path, chain: str) -> None:
    refused = audit("export", "--state", state, "--chain", chain)
    assert (refused.exit_code, refused.stdout) == (Exit.NOT_DECIDED, "")
    assert f"There is no chain {chain}." in refused.stderr


def rows_in(export: Path) -> int:
    with export.open(newline="", encoding="utf-8") as lines:
        return len(list(csv.reader(lines))) - 1


def change(state: Path, statement) -> None:
    store = Store.open(sqlite_url(state / "custody.db"))
    with store.write() as db:
        db.execute(statement)
    store.close()


class TestVerify:
    def test_says_what_it_read_and_what_it_could_not_know(self, state: Path) -> None:
        without = audit("verify", "--state", state)
        assert without.stdout.startswith("Every audit chain is whole.\n")
        assert "No checkpoint was given" in without.stderr
        made, nothing_new = (audit("checkpoint", "--state", state).stdout for _ in range(2))
        assert made.startswith("Checkpoint 1 is in ")
        assert nothing_new == "Nothing was recorded since the last checkpoint.\n"
        key = audit("public-key", "--state", state).stdout.strip()
        answer = audit("verify", "--state", state, "--public-key", key, "--json")
        assert answer.exit_code == 0
        report = json.loads(answer.stdout)
        assert (report["whole"], report["checkpoints"], report["findings"]) == (True, 1, [])

    def test_names_each_fault_and_exits_with_1(self, state: Path) -> None:
        """P42."""
        audit("checkpoint", "--state", state)
        own = AuditEventRow.chain_id == "workspace:1", AuditEventRow.position == 1
        change(state, update(AuditEventRow).where(*own).values(description="forged"))
        answer = audit("verify", "--state", state)
        assert answer.exit_code == Exit.AUDIT
        assert answer.stderr == "workspace:1, row 1: the row was altered\n"
        assert answer.stdout == ""
        report = json.loads(audit("verify", "--state", state, "--json").stdout)
        assert report["whole"] is False
        finding = {"where": "workspace:1", "unit": "row", "place": 1, "sentence": "the row was altered"}
        assert report["findings"] == [finding]

    @pytest.mark.parametrize("key", ["", "xyz", "1" * 63, "A" * 64])
    def test_what_is_no_key_is_a_mistake_in_the_command(self, state: Path, key: str) -> None:
        assert audit("verify", "--state", state, "--public-key", key).exit_code == 2


class TestExport:
    def test_and_with_the_checkpoints(self, state: Path, export: Path) -> None:
        """The export's own record came after it; an export of the whole chain is confirmed to its end."""
        audit("checkpoint", "--state", state)
        file = export.with_name("all.csv")
        file.write_bytes(audit("export", "--state", state, "--chain", "workspace:1").stdout_bytes)
        key = audit("public-key", "--state", state).stdout.strip()
        given = ("--checkpoints", state / "audit-checkpoints.jsonl", "--public-key", key)
        answer = audit("verify-export", file, *given, "--json")
        count = rows_in(file)
        assert (answer.exit_code, count) == (0, rows_in(export) + 1)
        assert json.loads(answer.stdout) == {
            "chain_id": "workspace:1", "rows": count, "first": 1, "last": count, "gaps": 0, "confirmed": 1,
            "confirmed_rows": count, "fault": None, "whole": True,
        }  # fmt: skip
        answer = audit("verify-export", file, *given)
        assert f"Checkpoints confirm rows 1 to {count}.\n" in answer.stdout
        assert audit("verify-export", file, *given[:2]).exit_code == Exit.USAGE
        wrong = audit("verify-export", file, *given[:3], "2" * 64)
        assert (wrong.exit_code, "not a trusted key" in wrong.stderr) == (1, True)

    def test_a_changed_cell_is_named(self, export: Path) -> None:
        export.write_bytes(export.read_bytes().replace(b"user 2", b"user 1"))
        answer = audit("verify-export", export)
        assert answer.exit_code == Exit.AUDIT
        assert answer.stderr == f"workspace:1, row {rows_in(export)}: the row was altered\n"
        report = json.loads(audit("verify-export", export, "--json").stdout)
        assert (report["whole"], report["fault"]["position"]) == (False, rows_in(export))

    @pytest.mark.parametrize("content", [b"", b"a,b\r\n", b"\xff\xfe"])
    def test_what_is_no_export_is_explained(self, export: Path, content: bytes) -> None:
        export.write_bytes(content)
        answer = audit("verify-export", export)
        assert answer.exit_code == 1
        assert "not one that a spreadsheet saved" in answer.stderr
