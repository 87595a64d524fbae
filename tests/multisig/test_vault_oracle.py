"""bdkpython as an oracle: another implementation derives the same addresses from our descriptors."""

import bdkpython as bdk
import pytest

from multisig import CHANGE, RECEIVE, Network
from tests.support.policies import profile, vault

NETWORKS = {
    Network.MAINNET: bdk.Network.BITCOIN,
    Network.TESTNET4: bdk.Network.TESTNET4,
    Network.SIGNET: bdk.Network.SIGNET,
    Network.REGTEST: bdk.Network.REGTEST,
}
INDEXES = [0, 1, 2, 3, 20, 999, 65_536, 1_000_000]


def kind(network):
    return bdk.NetworkKind.MAIN if network is Network.MAINNET else bdk.NetworkKind.TEST


def branches(text, network):
    return bdk.Descriptor(text, kind(network)).to_single_descriptors()


@pytest.mark.parametrize("name", ["2-of-3-mainnet", "2-of-3-testnet4", "3-of-3-regtest", "1-of-3-signet"])
def test_vault_addresses(name):
    policy = vault(name)
    singles = branches(policy.descriptor, policy.network)
    for chain in (RECEIVE, CHANGE):
        for index in INDEXES:
            theirs = str(singles[chain].derive_address(index, NETWORKS[policy.network]))
            assert policy.address(chain, index) == theirs


@pytest.mark.parametrize("name", ["profile-mainnet", "profile-regtest"])
def test_profile_addresses(name):
    policy = profile(name)
    singles = branches(f"wpkh({policy.key}/<0;1>/*)", policy.network)
    for chain in (RECEIVE, CHANGE):
        for index in INDEXES:
            theirs = str(singles[chain].derive_address(index, NETWORKS[policy.network]))
            assert policy.address(chain, index) == theirs


def test_it_takes_our_checksum_and_refuses_a_wrong_one():
    """Else the agreement above would say nothing about the checksum."""
    policy = vault()
    assert branches(policy.descriptor, policy.network)
    wrong = policy.descriptor[:-1] + ("q" if policy.descriptor[-1] != "q" else "p")
    with pytest.raises(bdk.DescriptorError):
        bdk.Descriptor(wrong, kind(policy.network))
