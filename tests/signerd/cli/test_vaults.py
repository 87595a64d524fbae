"""vaults, pin (S16): the code comes from the other signers, and is typed."""

import pytest

from firmware_bridge import Disconnected
from signerd.cli.exits import Exit
from signerd.loopback.shapes import VaultView
from tests.support.command import is_tame, signerd
from tests.support.desk import VAULT, VAULT_ID
from tests.support.served import make_outer, served_daemon, served_script

CODE = VAULT.verification_code


@pytest.fixture
def outer(tmp_path):
    return make_outer(tmp_path)


@pytest.fixture
def desk(tmp_path, outer):
    with served_daemon(tmp_path / "s", outer, prepared=False) as daemon:
        assert signerd("register", "--yes", state=daemon.state).status == Exit.OK
        daemon.until(lambda: bool(daemon.service.journal.claims()))
        yield daemon


def test_an_unpinned_vault_is_shown_with_what_people_compare(desk):
    text = signerd("vaults", state=desk.state).out
    for part in (VAULT_ID, "2 of 3", "REGTEST", VAULT.address(0, 0), CODE, "not pinned", "account 0"):
        assert part in text
    [vault] = signerd("vaults", "--json", state=desk.state).json
    assert (vault["vault_id"], vault["verification_code"], vault["pinned"]) == (VAULT_ID, CODE, False)
    assert (vault["threshold"], vault["signers"], vault["first_address"]) == (2, 3, VAULT.address(0, 0))


def test_pin_asks_for_the_code_and_does_not_show_it_before(desk, outer):
    wrong = signerd("pin", VAULT_ID, state=desk.state, typed="AAAA-BBBB\n")
    assert wrong.status == Exit.NOT_DECIDED
    assert CODE not in wrong.out
    assert VAULT.address(0, 0) in wrong.out
    right = signerd("pin", VAULT_ID, state=desk.state, typed=CODE.lower().replace("-", " ") + "\n")
    assert right.status == Exit.OK
    assert "PINNED" in right.out
    assert outer.bridge.enrolled == [CODE]
    assert "PINNED" in signerd("vaults", state=desk.state).out


def test_pin_for_a_script(desk):
    ended = signerd("pin", VAULT_ID, "--code", CODE, "--json", state=desk.state)
    assert ended.status == Exit.OK
    assert ended.json["pinned"] is True


def test_nobody_there_to_type_the_code(desk):
    assert signerd("pin", VAULT_ID, state=desk.state).status == Exit.USAGE


def test_an_unknown_vault(desk):
    ended = signerd("pin", "vault-9", "--code", CODE, "--json", state=desk.state)
    assert ended.status == Exit.NOT_DECIDED
    assert ended.error["code"] == "unknown-vault"


def test_a_device_that_goes_leaves_the_vault_pinned_and_pinning_again_goes_on(desk, outer):
    outer.bridge.failures.append(Disconnected())
    assert signerd("pin", VAULT_ID, "--code", CODE, state=desk.state).status == Exit.DEVICE
    assert signerd("pin", VAULT_ID, "--code", CODE, state=desk.state).status == Exit.OK
    assert outer.bridge.enrolled == [CODE]


def make_view(**changes: object) -> VaultView:
    usual: dict[str, object] = {
        "vault_id": "v-1",
        "workspace_id": 1,
        "name": "\x1b[2J\u202eevil\nPINNED",
        "network": "mainnet",
        "threshold": None,
        "signers": None,
        "first_address": None,
        "verification_code": None,
        "account": None,
        "pinned": False,
        "enrolled": False,
        "fault": "its descriptor's checksum is wrong",
    }
    return VaultView.model_validate({**usual, **changes})


def test_a_vault_that_cannot_be_read_shows_why_and_cannot_be_pinned(tmp_path):
    with served_script(tmp_path / "s", vaults=(make_view(),)) as daemon:
        text = signerd("vaults", state=daemon.state).out
        assert "not readable" in text
        assert "checksum is wrong" in text
        assert "MAINNET: real bitcoin" in text
        ended = signerd("pin", "v-1", "--code", "X", state=daemon.state)
        assert ended.status == Exit.NOT_DECIDED
        assert ("pin", "v-1", "X") not in daemon.service.calls


def test_l8_a_vaults_name_is_tame(tmp_path):
    with served_script(tmp_path / "s", vaults=(make_view(),)) as daemon:
        for arguments in (["vaults"], ["vaults", "--json"]):
            out = signerd(*arguments, state=daemon.state).out
            assert is_tame(out.replace("\\n", "")), out


def test_no_vault(tmp_path):
    with served_script(tmp_path / "s", vaults=()) as daemon:
        assert "no vault yet" in signerd("vaults", state=daemon.state).out
