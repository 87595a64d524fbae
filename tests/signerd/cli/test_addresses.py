"""addresses, accounts."""

import pytest

from firmware_bridge import AddressMismatch, DeviceState
from multisig import Profile, profile_account_path
from signerd.cli.terminal import Exit
from signerd.core.audit import Note
from signerd.core.values import OwnKey
from tests.support.command import signerd
from tests.support.desk import NETWORK, VAULT, VAULT_ID, own_keys
from tests.support.served import make_outer, served_daemon
from tests.support.wallets import ALICE

PROFILE_KEY = ALICE.origin_key(profile_account_path(NETWORK))
PROFILE = Profile(NETWORK, PROFILE_KEY)


@pytest.fixture
def outer(tmp_path):
    return make_outer(tmp_path)


@pytest.fixture
def desk(tmp_path, outer):
    with served_daemon(tmp_path / "s", outer) as daemon:
        keys = (*own_keys(), OwnKey(PROFILE_KEY, "profile", 0))
        daemon.on_loop(daemon.service.journal.add_own_keys, keys, "key-1", Note("registered", "key-1"))
        yield daemon


def test_addresses_of_a_vault(desk):
    ended = signerd("addresses", VAULT_ID, "--start", "3", "--count", "2", state=desk.state)
    assert ended.status == Exit.OK
    assert "REGTEST: test coins" in ended.out
    for index in (3, 4):
        assert VAULT.address(0, index) in ended.out
    found = signerd("addresses", VAULT_ID, "--change", "--count", "1", "--json", state=desk.state).json
    assert [one["address"] for one in found["addresses"]] == [VAULT.address(1, 0)]


def test_addresses_of_the_profile(desk):
    assert PROFILE.address(0, 0) in signerd("addresses", "profile", state=desk.state).out


@pytest.mark.parametrize(("whose", "policy"), [(VAULT_ID, VAULT), ("profile", PROFILE)])
def test_the_device_shows_one(desk, outer, whose, policy):
    ended = signerd("addresses", whose, "--show", "2", state=desk.state)
    assert ended.status == Exit.OK
    assert outer.bridge.shown == [policy.address(0, 2)]
    told, same, _rest = ended.out.partition("Your device shows the same address")
    assert same
    assert f"It must be {policy.address(0, 2)}" in told
    assert signerd("addresses", whose, "--show", "2", "--json", state=desk.state).json["index"] == 2


def test_s13_another_address_on_the_device(desk, outer):
    outer.bridge.showing.append(AddressMismatch(detail="tb1other"))
    ended = signerd("addresses", VAULT_ID, "--show", "0", state=desk.state)
    assert ended.status == Exit.NOT_DECIDED
    assert "ALARM" in ended.err
    assert "Send nothing to either address" in ended.err


def test_the_registered_keys(desk, outer):
    desk.on_loop(outer.bridge.becomes, DeviceState.LOCKED)
    ended = signerd("accounts", state=desk.state)
    assert ended.status == Exit.OK
    assert str(PROFILE_KEY.xpub) in ended.out
    assert len(signerd("accounts", "--json", state=desk.state).json["keys"]) == 3


def test_the_keys_of_an_account_from_a_device(desk, outer):
    ended = signerd("accounts", "--device", outer.bridge.device.id, "--number", "5", state=desk.state)
    assert ended.status == Exit.OK
    assert "m/48h/1h/5h/2h" in ended.out
    assert "m/84h/1h/5h" in ended.out


def test_nobody_has_registered(tmp_path, outer):
    with served_daemon(tmp_path / "n", outer, prepared=False) as daemon:
        assert "signerd register" in signerd("accounts", state=daemon.state).out
        assert signerd("addresses", "profile", state=daemon.state).status == Exit.NOT_DECIDED
