"""Enrolment files: the text form, and a descriptor."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_simulators.coldcard.replies import CommandRefused
from device_simulators.coldcard.wallet_file import parse_wallet_file
from multisig import Network, Vault
from tests.support.coldcard import NETWORK, SEED, VAULT, text_file
from tests.support.wallets import BOB, make_vault


def parse(content, network=NETWORK):
    return parse_wallet_file(content, SEED, network)


def refused(content, reason, network=NETWORK):
    with pytest.raises(CommandRefused, match=reason):
        parse(content, network)


def edited(old, new):
    content = text_file(VAULT).decode()
    assert old in content
    return content.replace(old, new).encode()


@pytest.mark.parametrize(
    "content",
    [
        text_file(VAULT),
        edited("\n", "\r\n"),
        edited("Name: Treasury", "# exported\nname: Treasury # ours"),
        edited("Policy: 2 of 3", "policy: 2/3"),
        edited("Format: P2WSH", "Format: p2wsh\nOwner: somebody (else)"),
        edited("48h", "48'"),
    ],
)
def test_every_form_gives_the_same_wallet(content):
    wallet = parse(content)
    assert (wallet.name, wallet.threshold, wallet.cosigners) == ("Treasury", 2, VAULT.cosigners)


@pytest.mark.parametrize("content", [VAULT.descriptor, VAULT.descriptor.split("#")[0]])
def test_a_bare_descriptor_is_named_after_its_policy(content):
    wallet = parse(content.encode())
    assert (wallet.name, wallet.cosigners) == ("2-of-3", VAULT.cosigners)


def test_s15_a_quorum_without_us_is_refused():
    refused(text_file(make_vault()), "my key not included")


def test_s15_a_key_that_only_claims_to_be_ours_is_refused():
    own, *others = VAULT.cosigners
    forged = replace(own, xpub=BOB.vault_key(NETWORK, 5).xpub)
    refused(text_file(replace_cosigners((forged, *others))), r"\[73C5DA0A/48h/1h/0h/2h\] wrong pubkey")


def test_s17_a_fingerprint_given_twice_is_refused():
    own, bob, _ = VAULT.cosigners
    refused(text_file(replace_cosigners((own, bob, bob))), "dup XFP")


def replace_cosigners(keys):
    """A quorum that `Vault` itself would refuse."""
    vault = object.__new__(Vault)
    object.__setattr__(vault, "network", NETWORK)
    object.__setattr__(vault, "threshold", 2)
    object.__setattr__(vault, "cosigners", keys)
    return vault


def test_s14_keys_of_another_chain_are_refused():
    refused(text_file(VAULT), "wrong chain", Network.MAINNET)
    refused(VAULT.descriptor.encode(), "wrong chain", Network.MAINNET)


@given(st.binary(max_size=500))
def test_s23_any_bytes_are_a_wallet_or_refused(content):
    try:
        parse(content)
    except CommandRefused:
        return


@given(st.integers(0, 3000), st.integers(0, 255))
def test_s23_a_flipped_byte_never_makes_another_quorum_of_the_same_keys(position, value):
    content = bytearray(text_file(VAULT))
    content[position % len(content)] = value
    try:
        wallet = parse(bytes(content))
    except CommandRefused:
        return
    assert {key.xpub for key in wallet.cosigners} == {key.xpub for key in VAULT.cosigners}
