"""What a person compares stands first as the device writes it; a pinned vault's addresses are recognised."""

import pytest

from firmware_bridge import Family
from multisig import MAX_INDEX, RECEIVE, Network, encode_address
from signerd.core.addresses import RECOGNISED_ADDRESSES, on_screen, receive_scripts
from signerd.core.text import as_compared
from signerd.daemon.devices import FIRST
from signerd.daemon.vaults import written_on
from tests.support.desk import VAULT
from tests.support.wallets import foreign_script

SCRIPT = foreign_script("a shop")


@pytest.mark.parametrize("network", Network)
def test_only_on_regtest_the_device_writes_another_form(network):
    screen, address = on_screen(SCRIPT, network), encode_address(SCRIPT, network)
    assert (screen == address) is (network is not Network.REGTEST)
    assert as_compared(screen, address).startswith(screen)
    assert (address in as_compared(screen, address)[len(screen) :]) is (network is Network.REGTEST)
    assert on_screen(b"\x51", network) is None


@pytest.mark.parametrize("family", Family)
def test_a_family_that_knows_regtest_writes_its_own_form(family):
    prefix = "bcrt1" if family is Family.JADE else "tb1"
    assert written_on(VAULT, FIRST, family).startswith(prefix)


@pytest.mark.parametrize(
    ("following", "first", "last"),
    [
        (0, 0, RECOGNISED_ADDRESSES - 1),
        (500, 400, 599),
        (MAX_INDEX + 1, MAX_INDEX + 1 - RECOGNISED_ADDRESSES, MAX_INDEX),
    ],
)
def test_no_further_than_a_bound_and_to_the_end_of_the_chain(following, first, last):
    found = receive_scripts(VAULT, following)
    assert list(found.values()) == list(range(first, last + 1))
    assert found[VAULT.script_pubkey(RECEIVE, last)] == last
