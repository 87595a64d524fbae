"""The checks of a worker's answers."""

import base64

import pytest

from firmware_bridge import calls
from firmware_bridge.errors import DeviceFault, WrongApp
from multisig import DerivationPath, Network, message_hash, multisig_account_path
from tests.conformance.rigs import SEEDS

NETWORK = Network.TESTNET4
PATH = multisig_account_path(NETWORK)
SEED = SEEDS[0]
XPUB = str(SEED.xpub(PATH, NETWORK))


@pytest.mark.parametrize("text", ["", None, 7, XPUB[:-1], XPUB[:-1] + "1", "tpub"])
def test_what_is_no_key(text):
    with pytest.raises(DeviceFault):
        calls.origin_key(SEED.fingerprint, PATH, text, NETWORK)


def test_s15_the_key_of_another_path():
    with pytest.raises(DeviceFault):
        calls.origin_key(SEED.fingerprint, DerivationPath.parse("m/84h/1h/0h"), XPUB, NETWORK)


def test_s14_the_key_of_another_network():
    with pytest.raises(WrongApp):
        calls.origin_key(SEED.fingerprint, PATH, XPUB, Network.MAINNET)


@pytest.mark.parametrize("text", ["", None, "xyz", "1234567", "123456789a"])
def test_what_is_no_fingerprint(text):
    with pytest.raises(DeviceFault):
        calls.fingerprint(text)


@pytest.mark.parametrize("text", ["a", "ü", "?"])
def test_what_is_no_signature(text):
    with pytest.raises(DeviceFault):
        calls.signature(text)


def test_a_message_signature_is_held_against_the_key():
    path = PATH / "0/0"
    signed = SEED.sign_recoverable(path, message_hash("hello"))
    assert calls.signature(base64.b64encode(signed).decode()) == signed
    assert calls.is_by(SEED.public_key(path), "hello", signed)
    assert not calls.is_by(SEED.public_key(path), "hullo", signed)
    assert not calls.is_by(SEED.public_key(PATH / "0/1"), "hello", signed)
    assert not calls.is_by(SEED.public_key(path), "hello", signed[:-1])
