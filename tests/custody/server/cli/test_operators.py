"""``custody admin make-operator`` and ``rescan``."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from custody.common.terminal import Exit
from custody.server.cli import app
from custody.server.store.models import UserRow
from tests.support.custody import open_desk
from tests.support.platform import World, open_world

ALICE = "alice@example.org"


@pytest.fixture
def world(tmp_path: Path):
    with open_world(tmp_path) as opened:
        opened.organisation("Acme", ALICE)
        yield opened


def make_operator(tmp_path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["admin", "make-operator", "--state", str(tmp_path), *arguments])


def is_operator(world: World) -> bool:
    with world.platform.services.store.read() as db:
        return db.get_one(UserRow, 1).is_operator


def test_an_operator_is_made_and_unmade_by_command_alone(world: World, tmp_path: Path) -> None:
    assert not is_operator(world)
    for _ in range(2):
        assert make_operator(tmp_path, "Alice@example.org").stdout.endswith("(user 1) is an operator.\n")
    assert is_operator(world)
    told = make_operator(tmp_path, ALICE, "--json").stdout
    assert json.loads(told) == {"user_id": 1, "is_operator": True}
    for _ in range(2):
        assert "no longer an operator" in make_operator(tmp_path, ALICE, "--take-away").stdout
    assert not is_operator(world)
    assert world.audit_actions() == ["OPERATOR_APPOINTED", "OPERATOR_DISMISSED"]


def test_an_address_without_an_account_is_refused(world: World, tmp_path: Path) -> None:
    answer = make_operator(tmp_path, "nobody@example.org")
    assert answer.exit_code == Exit.NOT_DECIDED
    assert "no account for nobody@example.org" in answer.stderr
    assert not is_operator(world)


def test_a_rescan_says_what_is_watched(tmp_path: Path) -> None:
    with open_desk(tmp_path) as desk:
        asked = [
            "admin",
            "rescan",
            "--state",
            str(tmp_path),
            "--vault",
            desk.vault["id"],
            "--addresses",
            "30",
        ]
        answer = CliRunner().invoke(app, [*asked, "--json"])
        assert json.loads(answer.stdout) == {"vault_id": desk.vault["id"], "addresses": 30}
        assert "The first 30 addresses" in CliRunner().invoke(app, asked).stdout
