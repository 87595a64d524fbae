import pytest

from multisig import InvalidPath, Network, multisig_account_path, profile_account_path
from multisig.accounts import account_of
from multisig.keys import DerivationPath
from tests.support.vectors import official

NETWORKS = {"mainnet": Network.MAINNET, "testnet": Network.TESTNET4}
ORDINALS = ["first", "second"]


@pytest.mark.parametrize("vector", official("bip48.json", lambda vector: vector["script"] == "p2wsh"))
def test_bip48_paths(vector):
    account = multisig_account_path(NETWORKS[vector["network"]], ORDINALS.index(vector["account"]))
    chain = ["external", "change"].index(vector["chain"])
    path = account / chain / ORDINALS.index(vector["address"])
    assert path == DerivationPath.parse(vector["path"])


def test_paths_as_text():
    assert str(multisig_account_path(Network.MAINNET)) == "m/48h/0h/0h/2h"
    assert str(multisig_account_path(Network.REGTEST, 7)) == "m/48h/1h/7h/2h"
    assert str(profile_account_path(Network.SIGNET)) == "m/84h/1h/0h"
    assert str(profile_account_path(Network.MAINNET, 2)) == "m/84h/0h/2h"


@pytest.mark.parametrize("account", [-1, 2**31, 2**32])
def test_impossible_accounts(account):
    with pytest.raises(InvalidPath):
        multisig_account_path(Network.MAINNET, account)
    with pytest.raises(InvalidPath):
        profile_account_path(Network.MAINNET, account)


@pytest.mark.parametrize(
    ("path", "account"), [("m/48h/0h/5h/2h", 5), ("m/48h/0h/5/2h", 0), ("m/48h", 0), ("m", 0)]
)
def test_account_of(path, account):
    assert account_of(DerivationPath.parse(path)) == account
