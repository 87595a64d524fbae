import hashlib
import pickle
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multisig import (
    CHANGE,
    MAX_INDEX,
    RECEIVE,
    DerivationPath,
    Fingerprint,
    InvalidDescriptor,
    InvalidKey,
    InvalidPath,
    KeyOrigin,
    Network,
    OriginKey,
    Profile,
    Vault,
    WrongNetwork,
    checksum,
    multisig_account_path,
    p2wpkh,
    p2wsh,
    parse_multisig_script,
    profile_account_path,
)
from multisig.descriptor import strip_checksum
from multisig.keys import HARDENED
from multisig.vault import account_of
from tests.support.examples import examples
from tests.support.policies import profile, vault
from tests.support.vectors import official, own

VAULT = vault()
A, B, C = VAULT.cosigners
POLICIES = [VAULT, profile()]
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def moved(key, path):
    return OriginKey(KeyOrigin(key.fingerprint, DerivationPath.parse(path)), key.xpub)


def deeper(key, depth, child_number):
    parent = Fingerprint(bytes(4)) if depth == 0 else key.xpub.parent_fingerprint
    xpub = replace(key.xpub, depth=depth, parent_fingerprint=parent, child_number=child_number)
    return OriginKey(key.origin, xpub)


@pytest.mark.parametrize("vector", own("policies.json", lambda vector: vector["kind"] == "vault"))
def test_another_library_s_vaults(vector):
    policy = Vault.from_descriptor(vector["descriptor"], Network(vector["network"]))
    for place in vector["addresses"]:
        chain, index = place["chain"], place["index"]
        assert policy.address(chain, index) == place["address"]
        assert policy.script_pubkey(chain, index).hex() == place["script_pubkey"]


@pytest.mark.parametrize("vector", own("policies.json", lambda vector: vector["kind"] == "profile"))
def test_another_library_s_profiles(vector):
    network = Network(vector["network"])
    policy = Profile(network, OriginKey.parse(vector["key"], network))
    for place in vector["addresses"]:
        assert policy.address(place["chain"], place["index"]) == place["address"]


@pytest.mark.parametrize("vector", official("bip388.json", lambda vector: vector["id"] == "bip388-valid-5"))
def test_bip388_multisig_policy(vector):
    policy = Vault.from_descriptor(vector["descriptor"], Network.MAINNET, strict=False)
    assert [str(key).replace("h", "'", 4) for key in policy.cosigners] == vector["keys_info"]


@given(st.integers(RECEIVE, CHANGE), st.integers(0, MAX_INDEX))
@settings(max_examples=examples(30))
def test_bip67_scripts_do_not_depend_on_the_order_of_cosigners(chain, index):
    scripts = {
        Vault(VAULT.network, 2, order).witness_script(chain, index) for order in permutations(VAULT.cosigners)
    }
    assert len(scripts) == 1
    threshold, keys = parse_multisig_script(scripts.pop())
    assert threshold == 2
    assert list(keys) == sorted(VAULT.derivations(chain, index))


def test_the_descriptor_keeps_the_given_order():
    swapped = Vault(VAULT.network, 2, (B, A, C))
    assert Vault.from_descriptor(swapped.descriptor, VAULT.network).cosigners == (B, A, C)
    assert swapped.descriptor != VAULT.descriptor


@given(st.integers(RECEIVE, CHANGE), st.integers(0, MAX_INDEX))
@settings(max_examples=examples(30))
def test_scripts_addresses_and_origins_belong_together(chain, index):
    assert VAULT.script_pubkey(chain, index) == p2wsh(VAULT.witness_script(chain, index))
    for policy in POLICIES:
        for public_key, origin in policy.derivations(chain, index).items():
            account = policy.cosigner_for(origin.fingerprint)
            assert origin.path == account.origin.path / chain / index
            assert account.xpub.derive(DerivationPath((chain, index))).public_key == public_key
    (public_key,) = profile().derivations(chain, index)
    assert profile().script_pubkey(chain, index) == p2wpkh(public_key)


@pytest.mark.parametrize("policy", POLICIES, ids=["vault", "profile"])
@pytest.mark.parametrize(
    ("chain", "index"), [(2, 0), (-1, 0), (0, -1), (0, MAX_INDEX + 1), (0, HARDENED), (HARDENED, 0)]
)
def test_s9_absurd_places_have_no_script(policy, chain, index):
    for method in (policy.script_pubkey, policy.address, policy.derivations):
        with pytest.raises(InvalidPath):
            method(chain, index)
    if isinstance(policy, Vault):
        with pytest.raises(InvalidPath):
            policy.witness_script(chain, index)


@pytest.mark.parametrize("policy", POLICIES, ids=["vault", "profile"])
def test_policies_cross_a_process_border(policy):
    assert policy.address(0, 0)
    sent = pickle.loads(pickle.dumps(policy))
    assert sent == policy
    assert sent.script_pubkey(1, 5) == policy.script_pubkey(1, 5)


def test_what_is_no_index_is_none_after_one_that_is_equal_either():
    """1.0 and true are equal to 1, whose script is kept."""
    assert VAULT.witness_script(0, 1)
    for chain, index in ((0, 1.0), (0, True), (0.0, 1), (False, 1)):
        with pytest.raises(InvalidPath):
            VAULT.witness_script(chain, index)


def test_cosigner_for():
    assert VAULT.cosigner_for(B.fingerprint) == B
    assert VAULT.cosigner_for(Fingerprint(b"none")) is None
    assert profile().cosigner_for(Fingerprint(b"none")) is None


NO_DEVICE = Fingerprint(bytes(4))
# The key of A under another fingerprint.
TWIN = OriginKey(KeyOrigin(Fingerprint(b"twin"), A.origin.path), A.xpub)


NO_ACCOUNTS = ("m", "m/48h/1h/0h", "m/48h/1h/0h/1h", "m/48h/1h/0h/2", "m/48h/1h/0/2h", "m/48/1h/0h/2h",
               "m/45h/1h/0h/2h", "m/48h/1h/0h/2h/0", "m/48h/1/0h/2h", "m/84h/1h/0h")  # fmt: skip
OTHER_LEVELS = ((3, HARDENED + 2), (5, HARDENED + 2), (0, 0), (4, HARDENED), (4, 2))
SINGLE = profile()


@pytest.mark.parametrize(
    ("threshold", "cosigners", "error", "words"),
    [
        (0, (A, B), InvalidDescriptor, "quorum"),
        (3, (A, B), InvalidDescriptor, "quorum"),
        (1, (), InvalidDescriptor, "quorum"),
        (-1, (A,), InvalidDescriptor, "quorum"),
        (1, (A,) * 16, InvalidDescriptor, "quorum"),
        (2, (A, B, TWIN), InvalidDescriptor, "same key"),
        (2, (A, replace(TWIN, xpub=replace(A.xpub, chain_code=bytes(32)))), InvalidDescriptor, "same key"),
        (
            2,
            (A, replace(B, origin=KeyOrigin(A.fingerprint, B.origin.path)), C),
            InvalidDescriptor,
            "fingerprint",
        ),
        (2, (replace(A, origin=KeyOrigin(NO_DEVICE, A.origin.path)), B, C), InvalidKey, "names no device"),
        (1, vault("2-of-3-mainnet").cosigners, WrongNetwork, None),
        (1, (moved(A, "m/48h/0h/0h/2h"),), WrongNetwork, "path"),
        *((1, (moved(A, path),), (InvalidKey, WrongNetwork), None) for path in NO_ACCOUNTS),
        *((1, (deeper(A, *levels),), InvalidKey, None) for levels in OTHER_LEVELS),
    ],
)
def test_s14_s16_s17_what_is_no_vault(threshold, cosigners, error, words):
    with pytest.raises(error, match=words):
        Vault(VAULT.network, threshold, cosigners)


@pytest.mark.parametrize(
    ("network", "key", "error"),
    [
        (Network.MAINNET, SINGLE.key, WrongNetwork),
        (SINGLE.network, A, InvalidKey),
        (SINGLE.network, moved(SINGLE.key, "m/84h/1h/0h/0"), InvalidKey),
        (SINGLE.network, moved(SINGLE.key, "m/84h/0h/0h"), WrongNetwork),
        (SINGLE.network, deeper(SINGLE.key, 4, HARDENED), InvalidKey),
    ],
)
def test_s17_a_profile_is_checked_alike(network, key, error):
    with pytest.raises(error):
        Profile(network, key)


def test_s16_a_descriptor_needs_a_checksum():
    with pytest.raises(InvalidDescriptor, match="no checksum"):
        Vault.from_descriptor(strip_checksum(VAULT.descriptor), VAULT.network)


class TestVerificationCode:
    def test_order_of_cosigners_does_not_matter(self):
        codes = {Vault(VAULT.network, 2, order).verification_code for order in permutations(VAULT.cosigners)}
        assert codes == {VAULT.verification_code}

    def test_s16_everything_else_does(self):
        codes = [
            policy.verification_code
            for policy in (VAULT, Vault(VAULT.network, 1, (A, B, C)), Vault(VAULT.network, 2, (A, B)),
                           Vault(VAULT.network, 2, (A, C)), vault("1-of-3-signet"), vault("2-of-3-mainnet"))
        ]  # fmt: skip
        assert len(set(codes)) == len(codes)

    def test_it_can_be_computed_by_anyone(self):
        """The recipe of the docstring, with nothing but text, SHA-256 and long division."""
        keys = ",".join(f"{key}/<0;1>/*" for key in sorted(map(str, VAULT.cosigners)))
        body = f"wsh(sortedmulti(2,{keys}))"
        digest = hashlib.sha256(f"{body}#{checksum(body)}".encode()).digest()
        number = int.from_bytes(digest[:20])
        code = "".join(CROCKFORD[number >> 5 * (31 - i) & 31] for i in range(32))
        assert VAULT.verification_code.replace("-", "") == code


NETWORKS = {"mainnet": Network.MAINNET, "testnet": Network.TESTNET4}
ORDINALS = ["first", "second"]


@pytest.mark.parametrize("vector", official("bip48.json", lambda vector: vector["script"] == "p2wsh"))
def test_bip48_paths(vector):
    account = multisig_account_path(NETWORKS[vector["network"]], ORDINALS.index(vector["account"]))
    chain = ["external", "change"].index(vector["chain"])
    path = account / chain / ORDINALS.index(vector["address"])
    assert path == DerivationPath.parse(vector["path"])


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
