"""A vault from another program's file: what each writes is read as the same vault, and what holds no vault is
named (S14 to S17; BIP-129, BIP-380, BIP-389, SLIP-132).
"""

import json
from time import process_time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from multisig import (
    InvalidDescriptor,
    MultisigError,
    Network,
    Vault,
    WrongNetwork,
    bsms_record,
    checksum,
    encodings,
    read_vault_file,
    wallet_policy,
)
from multisig.coordinator_files import ADDRESS_PROVES, CONVERTED, MAX_FILE_CHARACTERS, RECEIVING_ALONE
from tests.support.airgap import slip132
from tests.support.coordinators import WRITTEN, caravan, listdescriptors, nunchuk_bsms, setup_file, sparrow
from tests.support.examples import examples
from tests.support.vectors import official
from tests.support.wallets import ALICE, BOB, MALLORY, Signer, make_spend, make_vault

VAULT = make_vault()
OTHER = make_vault((ALICE, BOB, MALLORY))
NETWORK = Network.REGTEST
RECORD, POLICY = bsms_record(VAULT), str(wallet_policy(VAULT))
VERSION, TEMPLATE, PATHS, ADDRESS = RECORD.split("\n")
NOTES = {
    "Nunchuk's BSMS": ADDRESS_PROVES,
    "BSMS of one chain": ADDRESS_PROVES,
    "Specter's file": RECEIVING_ALONE,
    "BlueWallet's setup file": CONVERTED,
    "descriptor with Zpub": CONVERTED,
}


@pytest.mark.parametrize("form", WRITTEN)
@settings(max_examples=examples(10))
@given(st.data())
def test_what_each_program_writes_is_read_as_the_same_vault(form, data):
    names = data.draw(st.lists(st.text("abcdef", min_size=1), min_size=1, max_size=5, unique=True))
    vault = make_vault(
        [Signer(name) for name in names],
        data.draw(st.integers(1, len(names))),
        network=data.draw(st.sampled_from(Network)),
        account=data.draw(st.integers(0, 20)),
    )
    mark = data.draw(st.sampled_from(("", "\ufeff", " \n")))
    read = read_vault_file(f"{mark}{WRITTEN[form](vault)}\n", vault.network)
    if form.startswith("ours "):
        vault = Vault(vault.network, vault.threshold, tuple(sorted(vault.cosigners, key=str)))
    assert read.vault.descriptor == vault.descriptor
    assert read.notes == ((NOTES[form],) if form in NOTES else ())


@settings(max_examples=examples(150))
@given(st.data())
@example(None)
def test_a_damaged_file_gives_another_vault_or_one_error_that_says_something(data):
    if data is None:
        text = "[" * 400 + '{"a":' * 400
    else:
        text = WRITTEN[data.draw(st.sampled_from(sorted(WRITTEN)))](VAULT)
        at, upto = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        put = data.draw(
            st.text(max_size=5) | st.sampled_from(('"', "[", "{", "null", "-1", "1e9", "true", "[]"))
        )
        text = text[:at] + put + text[upto if data.draw(st.booleans()) else at :]
    for network in (NETWORK, Network.MAINNET):
        try:
            read_vault_file(text, network)
        except MultisigError as error:
            refused = error
        else:
            continue
        assert all((str(refused), refused.hint))


@pytest.mark.parametrize(
    "text",
    [
        "policy:" * 9_000,
        "#\n \n" * 16_000,
        "a(\n" * 20_000,
        "importdescriptors '" + '{"desc":"wsh(sortedmulti("},' * 2_000,
        "[" * MAX_FILE_CHARACTERS,
        '{"a":' * 12_000,
        "BSMS 1.0\n" + "wsh(" * 15_000 + "\n/0/*,/1/*\nx",
        json.dumps({"descriptors": ["x"] * 9_000}),
        json.dumps({"extendedPublicKeys": [{}] * 900, "addressType": "P2WSH"}),
    ],
    ids=range(9),
)
def test_the_work_for_a_hostile_file_is_bounded(text):
    began = process_time()
    with pytest.raises(MultisigError):
        read_vault_file(text[:MAX_FILE_CHARACTERS], NETWORK)
    assert process_time() - began < 2


@pytest.mark.parametrize(
    "vector", official("bip129.json", lambda vector: vector["id"] in {"bip129-2", "bip129-3"})
)
def test_the_bips_own_records_are_read(vector):
    read = read_vault_file(vector["round_2_descriptor_record"], Network.MAINNET).vault
    assert f"{read.threshold}/{len(read.cosigners)}" == vector["m_of_n"]
    assert read.address(0, 0) == vector["first_address"]


@pytest.mark.parametrize("vector", official("bip129.json", lambda vector: vector["id"] == "bip129-1"))
def test_a_record_of_bare_keys_is_refused(vector):
    """No address can be derived from keys without a chain code: such a vault is not ours."""
    with pytest.raises(InvalidDescriptor):
        read_vault_file(vector["round_2_descriptor_record"], Network.MAINNET)


def test_s16_another_first_address_is_refused_and_both_are_shown():
    for record in (RECORD, nunchuk_bsms(VAULT)):
        with pytest.raises(InvalidDescriptor) as told:
            read_vault_file(record.replace(ADDRESS, OTHER.address(0, 0)), NETWORK)
        assert OTHER.address(0, 0) in str(told.value)
        assert ADDRESS in str(told.value)


def test_s16_a_changed_threshold_contradicts_the_first_address():
    with pytest.raises(InvalidDescriptor, match="first address"):
        read_vault_file(RECORD.replace("sortedmulti(2,", "sortedmulti(1,"), NETWORK)


def test_s14_a_record_of_another_network_is_refused():
    with pytest.raises(InvalidDescriptor, match="first address"):
        read_vault_file(RECORD, Network.TESTNET4)
    for write in WRITTEN.values():
        with pytest.raises(WrongNetwork):
            read_vault_file(write(VAULT), Network.MAINNET)


def listed(*descriptors):
    return json.dumps({"descriptors": [{"desc": each} for each in descriptors]})


def private(xpub):
    return encodings.encode_base58check(bytes.fromhex("04358394") + xpub.serialize()[4:])


def one_chain(ending):
    body = VAULT.descriptor.partition("#")[0].replace("<0;1>/*", ending, 1)
    return f"{body}#{checksum(body)}"


KEY, CHANGE = str(VAULT.cosigners[0]), VAULT.chain_descriptor(1)
REFUSED = {
    "nested, Caravan": (caravan(VAULT, "P2SH-P2WSH"), "nested segwit"),
    "nested, Caravan as Sparrow writes it": (caravan(VAULT, "P2SH_P2WSH"), "nested segwit"),
    "not segwit, Caravan": (caravan(VAULT, "P2SH"), "not segwit"),
    "taproot, Caravan": (caravan(VAULT, "P2TR"), "taproot"),
    "nested, Coldcard": (setup_file(VAULT, script="P2WSH-P2SH"), "nested segwit"),
    "not segwit, Coldcard": (setup_file(VAULT).replace("Format: P2WSH\n", ""), "not segwit"),
    "an unknown script": (setup_file(VAULT, script="P2QR"), "'P2QR'"),
    "single key, Core": (listed(f"wpkh({KEY}/0/*)"), "single key"),
    "taproot, BSMS": ("BSMS 1.0\ntr(x)\n/0/*,/1/*\nx", "taproot"),
    "other order, Specter": (json.dumps({"descriptor": "wsh(multi(2,a,b))"}), "multi(), whose keys keep"),
    "two vaults": (listed(VAULT.descriptor, OTHER.descriptor), "has 2 vaults"),
    "change of another vault": (
        sparrow(VAULT).replace(VAULT.chain_descriptor(1), OTHER.chain_descriptor(1)),
        "2 vaults",
    ),
    "receiving alone, Core": (listed(VAULT.chain_descriptor(0)), "receiving addresses alone"),
    "change alone, Specter": (
        json.dumps({"descriptor": VAULT.chain_descriptor(1)}),
        "change addresses alone",
    ),
    "keys of two chains": (one_chain("0/*"), "receiving addresses alone"),
    "no checksum in a list": (listed(VAULT.descriptor.partition("#")[0]), "no checksum"),
    "fewer keys than said": (
        caravan(VAULT).replace('"totalSigners": 3', '"totalSigners": 4'),
        "4 keys and has 3",
    ),
    "a key without its fingerprint": (caravan(VAULT).replace(KEY[1:9], "Unknown"), "Key 1 of the file"),
    "a policy that names a key twice": (
        POLICY.replace("@1", "@0"),
        "each of its keys once",
    ),
    "a policy without one of its keys": (
        POLICY.rpartition("\n")[0],
        "each of its keys once",
    ),
    "a key without its path": (caravan(VAULT).replace("m/48'/1'/0'/2'", "Unknown"), "Key 1 of the file"),
    "a private key": (setup_file(VAULT, xpub=private), "private key"),
    "no policy": (setup_file(VAULT).replace("2 of 3", "most"), "how many"),
    "a name twice": ('{"desc": "a", "desc": "b"}', "twice"),
    "half of a file": (listdescriptors(VAULT)[:-9], "damaged"),
    "one key": (KEY, "one signer's key"),
    "SeedSigner's key": (
        f"[{VAULT.cosigners[0].origin}]{slip132(VAULT.cosigners[0].xpub)}",
        "one signer's key",
    ),
    "a key record": (f"BSMS 1.0\n00\n{KEY}\nA\nsignature", "one signer's key"),
    "a Coldcard's keys": ('{"xfp": "0F056943", "p2wsh": "Zpub"}', "one signer's keys"),
    "a PSBT": (make_spend(VAULT).to_base64(), "This is a PSBT"),
    "Electrum": ('{"wallet_type": "2of3"}', "Electrum"),
    "an encrypted record": ("0f" * 400, "encrypted"),
    "nothing": ("  \n", "empty"),
    "words": ("hello\nworld", "no form"),
    "too long": (" " * MAX_FILE_CHARACTERS + VAULT.descriptor, "too long"),
    "BSMS 2.0": (RECORD.replace("1.0", "2.0"), "Only BSMS 1.0"),
    "three lines": (f"{VERSION}\n{TEMPLATE}\n{PATHS}", "has 4 lines; this one has 3"),
    "five lines": (f"{RECORD}\n{ADDRESS}", "has 4 lines; this one has 5"),
    "open paths": (RECORD.replace(PATHS, "No path restrictions"), "other paths"),
    "one path": (RECORD.replace(PATHS, "/0/*"), "other paths"),
    "paths in disorder": (RECORD.replace(PATHS, "/1/*,/0/*"), "other paths"),
    "a wrong checksum": (RECORD.replace(TEMPLATE, f"{TEMPLATE}#{checksum('x')}"), "checksum is wrong"),
    "two kinds of paths": (RECORD.replace("/**", "/<0;1>/*", 1), "Key 2 of the descriptor does not end"),
    "a path twice": (RECORD.replace("/**", "/**/**", 1), "Key 1 of the descriptor"),
    "an address in capitals": (RECORD.replace(ADDRESS, ADDRESS.upper()), "first address"),
}


@pytest.mark.parametrize(("text", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_named(text, words):
    with pytest.raises(InvalidDescriptor) as told:
        read_vault_file(text, NETWORK)
    assert words in str(told.value)
    assert told.value.hint
