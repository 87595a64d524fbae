"""A vault from a file or from a PSBT: what is read, and what disagrees with itself (S15, S16,
S17; BIP-129, BIP-174).
"""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_bridge.airgap import EnrolmentForm, enrolment_text
from multisig import (
    InvalidDescriptor,
    InvalidPsbt,
    MultisigError,
    Network,
    Psbt,
    Vault,
    WrongNetwork,
    checksum,
    parse_multisig_script,
    vault_of_file,
    vault_of_psbt,
)
from multisig.vault_files import MAX_FILE_CHARACTERS
from tests.support.examples import examples
from tests.support.vectors import official
from tests.support.wallets import ALICE, BOB, CAROL, MALLORY, Signer, make_spend, make_vault, with_input

VAULT = make_vault()
NETWORK = Network.REGTEST
RECORD = enrolment_text(VAULT, "Savings", EnrolmentForm.BSMS)
VERSION, TEMPLATE, PATHS, ADDRESS = RECORD.split("\n")
SPEND = make_spend(VAULT)


def record(*lines: str) -> str:
    return "\n".join(lines)


def same(one: Vault, other: Vault) -> bool:
    """The order in which a PSBT sorts its keys is its own."""
    return one.verification_code == other.verification_code


# --- files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        VAULT.descriptor,
        f"\n {VAULT.descriptor}\r\n",
        RECORD,
        f"{RECORD}\n",
        RECORD.replace("\n", "\r\n"),
        record(VERSION, f"{TEMPLATE}#{checksum(TEMPLATE)}", PATHS, ADDRESS),
        record(VERSION, VAULT.descriptor, "No path restrictions", ADDRESS),
    ],
)
def test_what_coordinators_write_is_read(text):
    assert vault_of_file(text, NETWORK) == VAULT


@pytest.mark.parametrize(
    "vector", official("bip129.json", lambda vector: vector["id"] in {"bip129-2", "bip129-3"})
)
def test_the_bips_own_records_are_read(vector):
    read = vault_of_file(vector["round_2_descriptor_record"], Network.MAINNET)
    assert f"{read.threshold}/{len(read.cosigners)}" == vector["m_of_n"]
    assert read.address(0, 0) == vector["first_address"]


@pytest.mark.parametrize("vector", official("bip129.json", lambda vector: vector["id"] == "bip129-1"))
def test_a_record_of_bare_keys_is_refused(vector):
    """No address can be derived from keys without a chain code: such a vault is not ours."""
    with pytest.raises(InvalidDescriptor):
        vault_of_file(vector["round_2_descriptor_record"], Network.MAINNET)


@settings(max_examples=examples(25))
@given(st.data())
def test_every_record_of_ours_is_read_again(data):
    names = data.draw(st.lists(st.text("abcdef", min_size=1), min_size=1, max_size=5, unique=True))
    vault = make_vault(
        [Signer(name) for name in names],
        data.draw(st.integers(1, len(names))),
        network=data.draw(st.sampled_from(Network)),
        account=data.draw(st.integers(0, 20)),
    )
    assert vault_of_file(enrolment_text(vault, "V", EnrolmentForm.BSMS), vault.network) == vault


def test_s16_another_first_address_is_refused_and_both_are_shown():
    other = make_vault((ALICE, BOB, MALLORY)).address(0, 0)
    with pytest.raises(InvalidDescriptor) as told:
        vault_of_file(record(VERSION, TEMPLATE, PATHS, other), NETWORK)
    assert other in str(told.value)
    assert ADDRESS in str(told.value)


def test_s16_a_changed_threshold_contradicts_the_first_address():
    with pytest.raises(InvalidDescriptor, match="first address"):
        vault_of_file(RECORD.replace("sortedmulti(2,", "sortedmulti(1,"), NETWORK)


def test_s14_a_record_of_another_network_is_refused():
    with pytest.raises(InvalidDescriptor, match="first address"):
        vault_of_file(RECORD, Network.TESTNET4)
    with pytest.raises(WrongNetwork):
        vault_of_file(RECORD, Network.MAINNET)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "hello\nworld",
        VAULT.descriptor.partition("#")[0],
        VAULT.descriptor[:-1] + "x",
        VAULT.descriptor.replace("sortedmulti", "multi"),
        f"{VAULT.descriptor}\n{VAULT.descriptor}",
        record("BSMS 2.0", TEMPLATE, PATHS, ADDRESS),
        record("BSMS 1.00", TEMPLATE, PATHS, ADDRESS),
        record(VERSION, TEMPLATE, PATHS),
        record(VERSION, TEMPLATE, PATHS, ADDRESS, ADDRESS),
        record(VERSION, TEMPLATE, "No path restrictions", ADDRESS),
        record(VERSION, TEMPLATE, "/0/*", ADDRESS),
        record(VERSION, TEMPLATE, "/1/*,/0/*", ADDRESS),
        record(VERSION, VAULT.descriptor, PATHS, ADDRESS),
        record(VERSION, f"{TEMPLATE}#{checksum('x')}", PATHS, ADDRESS),
        record(VERSION, TEMPLATE.replace("/**", "/<0;1>/*", 1), PATHS, ADDRESS),
        record(VERSION, TEMPLATE.replace("/**", "/**/**", 1), PATHS, ADDRESS),
        record(VERSION, TEMPLATE, PATHS, ADDRESS.upper()),
        " " * MAX_FILE_CHARACTERS + VAULT.descriptor,
    ],
)
def test_what_is_not_whole_is_refused(text):
    with pytest.raises(InvalidDescriptor):
        vault_of_file(text, NETWORK)


# --- PSBTs --------------------------------------------------------------------------------------------------


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
