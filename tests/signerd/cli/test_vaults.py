"""vaults, pin, unpin (S16): the code comes from the other signers, and is typed. receive, addresses,
movements (docs/sign/airgap.md).
"""

import json
from dataclasses import replace

import pytest

from custody.common.terminal import Exit
from firmware_bridge import Registration
from multisig import Network, encode_address, wallet_policy
from multisig.coordinator_files import ADDRESS_PROVES
from tests.support.command import signerd
from tests.support.coordinators import nunchuk_bsms
from tests.support.desk import PROFILE, VAULT, VAULT_ID, spend
from tests.support.fake_platform import movement
from tests.support.wallets import ALICE, BOB, MALLORY, make_vault

CODE = VAULT.verification_code
OTHER = make_vault((ALICE, BOB, MALLORY))


@pytest.fixture
def registered(new_desk):
    """Its vault is seen, and not pinned."""
    signerd("register", "--yes", state=new_desk.state)
    new_desk.until(lambda: bool(new_desk.service.journal.claims()))
    return new_desk


def test_an_unpinned_vault_is_shown_with_what_people_compare(registered):
    text = signerd("vaults", state=registered.state).out
    for part in (VAULT_ID, "2 of 3", "REGTEST", VAULT.address(0, 0), CODE, "not pinned", "account 0"):
        assert part in text
    assert f"first address      {encode_address(VAULT.script_pubkey(0, 0), Network.TESTNET4)}\n" in text
    [vault] = signerd("vaults", "--json", state=registered.state).json
    assert (vault["vault_id"], vault["verification_code"], vault["pinned"]) == (VAULT_ID, CODE, False)
    assert (vault["threshold"], vault["signers"], vault["first_address"]) == (2, 3, VAULT.address(0, 0))


def test_pin_shows_what_is_compared_and_with_whom_and_asks_for_the_code(registered, outer):
    wrong = signerd("pin", VAULT_ID, state=registered.state, typed="AAAA-BBBB\n", ends=Exit.NOT_DECIDED)
    for part in ("2 of 3", VAULT.address(0, 0), CODE, "other signers", "by telephone", "labels only"):
        assert part in wrong.out
    for key in VAULT.cosigners:
        assert str(key.fingerprint) in wrong.out
        assert str(key.xpub) in wrong.out
    assert outer.bridge.enrolled == outer.bridge.shown == []
    right = signerd("pin", VAULT_ID, state=registered.state, typed=CODE.lower().replace("-", " ") + "\n")
    assert "PINNED, known to your device, its first address shown there" in right.out
    assert outer.bridge.enrolled == [CODE]
    assert outer.bridge.shown == [VAULT.address(0, 0)]
    assert "PINNED" in signerd("vaults", state=registered.state).out


# --- from a file, from a PSBT -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "name", "content"),
    [
        ("--from", "v.bsms", nunchuk_bsms(VAULT).encode()),
        ("--psbt", "p.psbt", spend().to_bytes()),
    ],
)
def test_a_vault_that_the_person_brings_is_pinned_where_the_record_agrees(
    registered, tmp_path, option, name, content
):
    path = tmp_path / name
    path.write_bytes(content)
    ended = signerd("pin", VAULT_ID, option, str(path), "--code", CODE, state=registered.state)
    assert "and the platform's record says the same" in ended.out
    assert "PINNED" in ended.out
    assert (f"Read as a record of BSMS 1.0. {ADDRESS_PROVES}" in ended.out) is (option == "--from")


# --- after the pin ------------------------------------------------------------------------------------------


def test_s16_a_change_is_shown_and_unpin_ends_the_alarm(registered, outer):
    """That only the old code does: `account/test_vaults.py`."""
    signerd("pin", VAULT_ID, "--code", CODE, state=registered.state)
    outer.platform.vault = OTHER
    # Listing the vaults asks the platform for them.
    signerd("vaults", state=registered.state)
    text = signerd("vaults", state=registered.state).out
    for part in ("ALARM", "only in the record", CODE, "signerd unpin"):
        assert part in text
    assert OTHER.verification_code not in text
    [vault] = signerd("vaults", "--json", state=registered.state).json
    assert vault["changes"]
    outer.platform.vault = VAULT
    done = signerd("unpin", VAULT_ID, "--json", state=registered.state, typed=f"{CODE}\n")
    assert (done.json["pinned"], done.json["changes"]) == (False, [])


def test_the_policy_is_given_with_what_a_ledger_returned(desk, outer):
    ended = signerd("policy", "Treasury", state=desk.state)
    assert ended.out.startswith(f"{wallet_policy(VAULT)}\n\nNo registration of a Ledger")
    mark = Registration(ALICE.fingerprint, CODE, "Savings", b"\x0f" * 32)
    outer.bridge.registrations += [mark, replace(mark, vault=OTHER.verification_code)]
    ended = signerd("policy", "Treasury", state=desk.state)
    assert ended.out.endswith(f"\n\n{ALICE.fingerprint}  'Savings'  {'0f' * 32}\n")
    other = replace(mark, fingerprint=BOB.fingerprint, name="Other")
    outer.bridge.registrations.append(other)
    file = json.loads(signerd("policy", VAULT_ID, "--caravan", state=desk.state).out)
    assert (file["name"], [each["xfp"] for each in file["ledgerPolicyHmacs"]]) == (
        "Savings",
        [str(ALICE.fingerprint)],
    )
    outer.bridge.registrations.remove(other)
    found = signerd("policy", VAULT_ID, "--json", state=desk.state).json
    assert found["keys"] == list(wallet_policy(VAULT).keys)
    assert found["registrations"] == [
        {"fingerprint": str(ALICE.fingerprint), "name": "Savings", "hmac": "0f" * 32}
    ]


def test_receive_gives_the_next_address_as_the_device_writes_it_and_has_it_shown(desk, outer):
    outer.platform.next_address, outer.platform.confirmed_sats = VAULT.address(0, 7), 5_000
    screen = encode_address(VAULT.script_pubkey(0, 7), Network.TESTNET4)
    text = signerd("receive", "Treasury", state=desk.state).out
    assert f"  address    {screen}\n             {VAULT.address(0, 7)} elsewhere: most devices" in text
    assert "receive address 7, not used yet" in text
    assert "5,000 sats), by the platform's word" in text
    assert outer.bridge.shown == []
    shown = signerd("receive", "Treasury", "--show", state=desk.state)
    assert shown.out.endswith("Your device shows the same address.\n")
    found = signerd("receive", VAULT_ID, "--json", state=desk.state).json
    assert (found["fresh"]["index"], found["fresh"]["on_screen"]) == (7, screen)


def test_addresses_of_a_vault_and_of_the_profile(desk, outer):
    ended = signerd("addresses", VAULT_ID, "--start", "3", "--count", "2", state=desk.state)
    assert "REGTEST: test coins" in ended.out
    for index in (3, 4):
        screen = encode_address(VAULT.script_pubkey(0, index), Network.TESTNET4)
        assert f"{index}  {screen}\n{'':19}{VAULT.address(0, index)}\n" in ended.out
    found = signerd("addresses", VAULT_ID, "--change", "--count", "1", "--json", state=desk.state).json
    assert [one["address"] for one in found["addresses"]] == [VAULT.address(1, 0)]
    assert PROFILE.address(0, 0) in signerd("addresses", "profile", state=desk.state).out
    shown = signerd("addresses", "profile", "--show", "2", state=desk.state)
    assert shown.out.endswith(" elsewhere: most devices write regtest's addresses in testnet's form).\n")
    assert outer.bridge.shown == [PROFILE.address(0, 2)]


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
        "  2026-01-02 03:04:05 UTC, unconfirmed",
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
