"""The seed of a virtual device: BIP-39, BIP-32 and the two kinds of signature."""

from coincurve import PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st

from device_simulators.seed import Seed
from multisig import DerivationPath, Network
from tests.support.examples import examples

ABANDON = "abandon " * 11 + "about"
HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
PATH = DerivationPath.parse("m/48h/1h/0h/2h/0/7")


def test_the_published_fingerprint_of_the_best_known_mnemonic():
    assert str(Seed.from_mnemonic(ABANDON).fingerprint) == "73c5da0a"


def test_the_account_key_of_bip84_s_test_vector():
    account = Seed.from_mnemonic(ABANDON).xpub(DerivationPath.parse("m/84h/0h/0h"), Network.MAINNET)
    # BIP-84's zpub, with the version bytes of an xpub.
    assert str(account) == (
        "xpub6CatWdiZiodmUeTDp8LT5or8nmbKNcuyvz7WyksVFkKB4RHwCD3XyuvPEbvqAQY3rAPshWcMLoP2fMFMKHPJ4ZeZXYVUhLv1VMrjPC7PW6V"
    )


def test_a_passphrase_is_another_wallet():
    plain = Seed.from_mnemonic(ABANDON)
    assert plain.with_passphrase("").fingerprint == plain.fingerprint
    assert str(plain.with_passphrase("TREZOR").fingerprint) != str(plain.fingerprint)


@settings(max_examples=examples(25))
@given(st.binary(min_size=32, max_size=32))
def test_signatures_verify_are_deterministic_and_low_s(digest):
    seed = Seed.from_entropy(bytes(16))
    signature = seed.sign(PATH, digest)
    assert signature == seed.sign(PATH, digest)
    assert PublicKey(seed.public_key(PATH)).verify(signature, digest, hasher=None)
    start_of_s = 4 + signature[3] + 2
    assert int.from_bytes(signature[start_of_s:], "big") <= HALF_ORDER


def test_the_symmetric_key_of_slip21_s_test_vector():
    key = Seed.from_mnemonic("all " * 12).symmetric_key(b"SLIP-0021")
    assert key.hex() == "1d065e3ac1bbe5c7fad32cf2305f7d709dc070d672044a19e610c77cdf33de0d"
