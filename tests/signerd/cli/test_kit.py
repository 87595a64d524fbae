"""kit: from the journal alone."""

import pytest

from signerd.cli.terminal import Exit
from tests.support.backups import open_one, remembering
from tests.support.command import signerd
from tests.support.desk import VAULT, VAULT_ID
from tests.support.kits import parsed


@pytest.fixture
def state(tmp_path):
    return remembering(tmp_path / "s")


def test_it_is_printed_or_written_beside_a_daemon_and_without_one(state, tmp_path):
    out = tmp_path / "kit.html"
    with open_one(state):
        printed = signerd("kit", VAULT_ID, state=state)
    assert parsed(printed.out).texts["descriptor"] == VAULT.descriptor
    written = signerd("kit", VAULT_ID, "--out", str(out), "--json", state=state)
    assert written.json["verification_code"] == VAULT.verification_code
    assert parsed(out.read_text()).texts["code"] == VAULT.verification_code
    assert out.stat().st_mode & 0o077 == 0
    said = signerd("kit", VAULT_ID, "--out", str(tmp_path / "other.html"), state=state)
    assert VAULT.verification_code in said.out


@pytest.mark.parametrize("name", ["kit.html", "kit.html.new"])
def test_another_file_is_not_replaced(state, tmp_path, name):
    (tmp_path / name).write_text("mine")
    ended = signerd("kit", VAULT_ID, "--out", str(tmp_path / "kit.html"), state=state)
    assert (ended.status, f"{name} is there already" in ended.err) == (Exit.STATE, True)
    assert (tmp_path / name).read_text() == "mine"


def test_a_vault_that_is_not_pinned_has_none(state):
    ended = signerd("kit", "vault-9", state=state)
    assert (ended.status, ended.out) == (Exit.NOT_DECIDED, "")


def test_where_it_cannot_be_written_it_says_so(state, tmp_path):
    ended = signerd("kit", VAULT_ID, "--out", str(tmp_path / "absent" / "kit.html"), state=state)
    assert ended.status == Exit.STATE
    assert "cannot be written" in ended.err
    told = signerd("kit", VAULT_ID, "--out", str(tmp_path / "absent" / "kit.html"), "--json", state=state)
    assert told.error["code"] == "file-not-written"
