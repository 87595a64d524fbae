"""Our encryption of a Coldcard's link against ckcc's own, which is slower."""

import secrets

import pytest
from coincurve import PrivateKey
from coincurve.ecdsa import der_to_cdata, serialize_compact

from firmware_bridge.hwi_client.coldcard.link import Ckcc
from multisig import DerivationPath
from tests.support.coldcard import ColdcardDevice
from tests.support.wallets import ALICE, BOB, ORDER

XPUB = str(ALICE.origin_key(DerivationPath(())).xpub)
SESSION_KEY = bytes(range(32))


def make(kind):
    """A client that is connected to nothing."""
    client = kind.__new__(kind)
    client.session_key = SESSION_KEY
    return client


def signed(digest=SESSION_KEY, *, high=False, by=ALICE):
    """As a device answers: a header, r, s."""
    compact = serialize_compact(der_to_cdata(PrivateKey(by.master.key).sign(digest, hasher=None)))
    if high:
        compact = compact[:32] + (ORDER - int.from_bytes(compact[32:])).to_bytes(32)
    return b"\x1f" + compact


def test_both_sides_agree_on_a_key():
    ours, theirs = make(Ckcc), make(ColdcardDevice)
    our_point, their_point = ours.ec_setup(), theirs.ec_setup()
    assert len(our_point) == 64
    assert ours.ec_mult(their_point) == theirs.ec_mult(our_point)


def test_the_secret_is_gone_after_the_handshake():
    ours, theirs = make(Ckcc), make(ColdcardDevice)
    ours.ec_setup()
    ours.ec_mult(theirs.ec_setup())
    assert not hasattr(ours, "my_key")


def test_a_point_that_is_not_on_the_curve():
    ours = make(Ckcc)
    ours.ec_setup()
    with pytest.raises(ValueError):
        ours.ec_mult(bytes(64))


def test_the_streams_run_on_over_messages_of_any_length():
    ours, theirs = make(Ckcc), make(ColdcardDevice)
    ours.aes_setup(SESSION_KEY)
    theirs.aes_setup(SESSION_KEY)
    for size in (4, 16, 63, 1, 2063):
        message = secrets.token_bytes(size)
        assert ours.encrypt_request(message) == theirs.encrypt_request(message)
        assert ours.decrypt_response(message) == theirs.decrypt_response(message)


@pytest.mark.parametrize("kind", [Ckcc, ColdcardDevice])
@pytest.mark.parametrize(
    ("signature", "expected"),
    [
        (signed(), True),
        (signed(high=True), True),
        (signed(bytes(32)), False),
        (signed(by=BOB), False),
        (bytes(65), False),
        (b"\xff" * 65, False),
    ],
    ids=["by the device", "with a high S", "of another session", "by another key", "zeros", "ones"],
)
def test_s21_who_signed_the_session(kind, signature, expected):
    assert make(kind).mitm_verify(signature, XPUB) is expected
