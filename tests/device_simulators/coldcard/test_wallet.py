"""The enrolled wallets, in memory and in their file."""

import json
from dataclasses import replace

import pytest

from device_simulators.coldcard import InvalidWalletFile
from device_simulators.coldcard.wallet import Wallet, WalletStore
from multisig import Network
from tests.support.coldcard import (
    NETWORK,
    VAULT,
    enrol,
    host,
    knows,
    on_thread,
    record,
    running,
    text_file,
    vault_with_device,
)

TREASURY = Wallet("Treasury", 2, VAULT.cosigners)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "wallets.json"


def test_what_is_kept_is_there_after_a_restart(file):
    WalletStore(NETWORK, file).keep(TREASURY)
    assert list(WalletStore(NETWORK, file)) == [TREASURY]


def test_a_twin_takes_the_new_name_and_another_threshold_is_another_wallet():
    store = WalletStore(NETWORK)
    store.keep(TREASURY)
    store.keep(replace(TREASURY, name="Savings"))
    store.keep(Wallet("Three", 3, VAULT.cosigners))
    assert [wallet.name for wallet in store] == ["Savings", "Three"]


def test_a_wallet_is_found_by_its_origins_and_threshold():
    store = WalletStore(NETWORK)
    store.keep(TREASURY)
    origins = [key.origin for key in VAULT.cosigners]
    assert store.find(2, origins) == TREASURY
    assert store.find(3, origins) is None
    assert store.find(2, origins[:2]) is None
    assert store.find(2, [key.origin for key in vault_with_device(account=1).cosigners]) is None


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"network": "regtest", "wallets": [{}]}', "\x00"])
def test_a_damaged_file_is_named_and_left_alone(file, content):
    file.write_text(content)
    with pytest.raises(InvalidWalletFile, match=r"wallets\.json"):
        WalletStore(NETWORK, file)
    assert file.read_text() == content


def test_s14_a_file_of_another_network_is_refused(file):
    WalletStore(NETWORK, file).keep(TREASURY)
    with pytest.raises(InvalidWalletFile, match="regtest"):
        WalletStore(Network.MAINNET, file)


def test_a_record_that_is_no_quorum_is_refused(file):
    WalletStore(NETWORK, file).keep(TREASURY)
    document = json.loads(file.read_text())
    document["wallets"][0]["threshold"] = 9
    file.write_text(json.dumps(document))
    with pytest.raises(InvalidWalletFile, match="M/N"):
        WalletStore(NETWORK, file)


@pytest.mark.anyio
async def test_the_device_keeps_its_wallets_when_it_is_started_again(tmp_path, file):
    def work(path):
        with host(path) as client:
            return knows(client, VAULT) or enrol(client, text_file(VAULT))

    async with running(tmp_path, wallets_file=file) as (_, path):
        await on_thread(work, path)
    async with running(tmp_path, wallets_file=file) as (device, path):
        shown = record(device.panel)
        await on_thread(work, path)
    assert shown == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("vault", "name", "remark", "names"),
    [
        (VAULT, "Treasury", "All details are the same", ["Treasury"]),
        (VAULT, "Savings", "All details are the same", ["Treasury"]),
        (vault_with_device(threshold=3), "Three", "will NOT replace it", ["Treasury", "Three"]),
        (vault_with_device(account=1), "Second", "Create new multisig wallet", ["Treasury", "Second"]),
    ],
)
async def test_the_screen_says_how_a_wallet_compares_with_those_on_record(
    tmp_path, vault, name, remark, names
):
    def work(path):
        with host(path) as client:
            enrol(client, text_file(VAULT))
            enrol(client, text_file(vault, name))

    async with running(tmp_path) as (device, path):
        shown = record(device.panel)
        await on_thread(work, path)
        assert remark in shown[-1].lines[0]
        assert [wallet.name for wallet in device.wallets] == names
