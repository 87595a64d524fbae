"""A vault from a file or from a PSBT: what is read, and what disagrees with itself (S15, S16,
S17; BIP-129, BIP-174).
"""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multisig import (
    InvalidPsbt,
    MultisigError,
    Network,
    Psbt,
    Vault,
    parse_multisig_script,
    vault_of_psbt,
    wallet_policy,
)
from tests.support.examples import examples
from tests.support.wallets import (
    ALICE,
    BOB,
    CAROL,
    MALLORY,
    THREE,
    Signer,
    make_spend,
    make_vault,
    with_input,
)

VAULT = make_vault()
NETWORK = Network.REGTEST
SPEND = make_spend(VAULT)


def same(one: Vault, other: Vault) -> bool:
    """The order in which a PSBT sorts its keys is its own."""
    return one.verification_code == other.verification_code


def test_a_proposals_own_keys_and_scripts_give_its_vault():
    assert same(vault_of_psbt(SPEND, NETWORK), VAULT)
    assert same(vault_of_psbt(Psbt.parse(SPEND.to_base64()), NETWORK), VAULT)
    one_of_two = make_vault((BOB, CAROL), 1, account=3)
    assert same(vault_of_psbt(make_spend(one_of_two), NETWORK), one_of_two)


@settings(max_examples=examples(15))
@given(st.data())
def test_every_vaults_psbt_gives_it_back(data):
    names = data.draw(st.lists(st.text("xyz", min_size=1), min_size=1, max_size=5, unique=True))
    vault = make_vault([Signer(name) for name in names], data.draw(st.integers(1, len(names))))
    assert same(vault_of_psbt(make_spend(vault, n_inputs=3), NETWORK), vault)


SCRIPT = SPEND.inputs[0].witness_script
_M, (FIRST, SECOND, _THIRD) = parse_multisig_script(SCRIPT)
MALLORYS = (MALLORY.vault_key().xpub, MALLORY.vault_key().origin)
NO_COIN = "not a coin"
DISAGREEING = {
    "S15: no cosigner": (replace(SPEND, xpubs=()), "3 cosigners"),
    "S15: one cosigner": (replace(SPEND, xpubs=SPEND.xpubs[:1]), "3 cosigners"),
    "S15: two cosigners": (replace(SPEND, xpubs=SPEND.xpubs[:2]), "3 cosigners"),
    "S15: another key in a cosigner's place": (replace(SPEND, xpubs=(*SPEND.xpubs[1:], MALLORYS)), NO_COIN),
    "S15: a cosigner too many": (replace(SPEND, xpubs=(*SPEND.xpubs, MALLORYS)), "4 account keys"),
    "S17: keys out of order": (
        with_input(
            SPEND, 0, witness_script=SCRIPT.replace(FIRST + b"\x21" + SECOND, SECOND + b"\x21" + FIRST)
        ),
        NO_COIN,
    ),
    "S16: another threshold than the coins'": (
        replace(
            SPEND,
            inputs=tuple(replace(i, witness_script=b"\x51" + i.witness_script[1:]) for i in SPEND.inputs),
        ),
        NO_COIN,
    ),
    "S3: coins of two quorums": (
        with_input(SPEND, 1, witness_script=make_spend(make_vault((ALICE, BOB), 2)).inputs[0].witness_script),
        "different quorums",
    ),
    "no script": (with_input(SPEND, 0, witness_script=None), None),
    "a script of no quorum": (with_input(SPEND, 0, witness_script=b"\x51"), None),
    "an amount that is not proven": (with_input(SPEND, 0, non_witness_utxo=None), None),
    "no origins": (with_input(SPEND, 0, derivations={}), None),
}


@pytest.mark.parametrize(("psbt", "words"), DISAGREEING.values(), ids=DISAGREEING)
def test_a_psbt_that_disagrees_with_itself_gives_no_vault_s3_s15_s16_s17(psbt, words):
    with pytest.raises(InvalidPsbt, match=words):
        vault_of_psbt(psbt, NETWORK)


def test_s14_a_psbt_of_another_network_is_refused():
    with pytest.raises(MultisigError):
        vault_of_psbt(SPEND, Network.MAINNET)


@settings(max_examples=examples(15))
@given(st.permutations((ALICE, BOB, CAROL)), st.integers(1, 3))
def test_a_wallet_policy_is_the_same_for_every_order_and_expands_to_the_vault(signers, threshold):
    """BIP-388: each @N/** is the N-th key at /<0;1>/*."""
    vault = make_vault(signers, threshold)
    policy = wallet_policy(vault)
    assert policy == wallet_policy(make_vault(THREE, threshold))
    text = policy.template
    for place, key in enumerate(policy.keys):
        text = text.replace(f"@{place}/**", f"{key}/<0;1>/*")
    assert same(Vault.from_descriptor(text, NETWORK, strict=False), vault)
    assert str(policy).splitlines() == [policy.template, *policy.keys]
