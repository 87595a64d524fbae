"""The enrolled wallets, in memory and in their file."""

import pytest

from device_simulators.coldcard import InvalidWalletFile
from device_simulators.coldcard.wallet import Wallet, WalletStore
from tests.support.coldcard import (
    NETWORK,
    VAULT,
    enrol,
    host,
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


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"network": "regtest", "wallets": [{}]}', "\x00"])
def test_a_damaged_file_is_named_and_left_alone(file, content):
    file.write_text(content)
    with pytest.raises(InvalidWalletFile, match=r"wallets\.json"):
        WalletStore(NETWORK, file)
    assert file.read_text() == content


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
