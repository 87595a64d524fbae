"""movements: deposits beside payments, the newest first, with the balance after each."""

import pytest

from custody.common.terminal import Exit
from tests.support.command import signerd
from tests.support.desk import VAULT_ID
from tests.support.fake_platform import movement


@pytest.fixture
def outer(outer):
    platform = outer.platform
    ours = {"txid": platform.proposals["p-1"].txid_expected, "kind": "payment", "title": "Invoice 7"}
    platform.movements = [movement(1, height=None, balance_sats=None), movement(2, **ours)]
    platform.movements += [movement(number) for number in range(3, 260)]
    return outer


def test_deposits_and_payments_in_words(desk):
    text = signerd("movements", "Treasury", "-n", "3", state=desk.state).out
    network, *lines = text.splitlines()
    assert network.startswith("REGTEST")
    assert lines[:2] == [
        "+0.00001000 BTC (1,000 sats)  Deposit",
        "  2026-01-02 03:04:05 UTC, not confirmed yet",
    ]
    assert lines[3].startswith("-0.00051000 BTC (-51,000 sats)  Pay 0.0005 BTC to tb1q")
    assert lines[3].endswith("[proposal p-1]")
    assert lines[4] == '  the platform says: "Invoice 7"'
    assert lines[-2] == ("  2026-01-02 03:04:05 UTC, block 103, balance after 0.00503000 BTC (503,000 sats)")


def test_page_after_page_as_far_as_asked_and_what_is_sought(desk):
    everything = signerd("movements", VAULT_ID, "-n", "1000", "--json", state=desk.state).json
    assert len(everything) == len({one["txid"] for one in everything}) == 259
    assert len(signerd("movements", VAULT_ID, "-n", "210", "--json", state=desk.state).json) == 210
    [found] = signerd("movements", VAULT_ID, "--search", "invoice", "--json", state=desk.state).json
    assert (found["psbt_id"], found["memo"]) == ("p-1", "Invoice 7")
    assert signerd("movements", VAULT_ID, "--search", "rent", state=desk.state).out == "No movements.\n"


def test_what_cannot_be_read_is_said_and_a_wrong_day_too(desk, outer):
    outer.platform.movements = [{"txid": "odd"}]
    told = signerd("movements", VAULT_ID, state=desk.state)
    assert told.out == "No movements.\n"
    assert "cannot be read" in told.err
    signerd("movements", VAULT_ID, "--from", "May", state=desk.state, ends=Exit.USAGE)
