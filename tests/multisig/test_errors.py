import pickle

import pytest

from multisig import errors
from multisig.errors import BadSignature, ForeignSignature, InvalidKey, MultisigError


def leaves():
    return [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, MultisigError)
    ]


@pytest.mark.parametrize("kind", leaves())
def test_every_error_has_a_code_and_a_hint(kind):
    error = kind("Something is wrong.")
    assert str(error) == "Something is wrong."
    assert error.code == error.code.lower().replace("_", "-")
    assert error.hint.endswith(".")


def test_codes_are_stable_and_unique():
    assert sorted(kind.code for kind in leaves()) == [
        "bad-signature", "foreign-signature", "invalid-address", "invalid-amount", "invalid-descriptor",
        "invalid-key", "invalid-message", "invalid-path", "invalid-psbt", "invalid-token",
        "invalid-transaction", "multisig", "not-finalisable", "psbt-mismatch", "psbt-too-large",
        "wrong-network",
    ]  # fmt: skip


def test_a_hint_may_be_more_precise():
    assert InvalidKey("It is private.", hint="Export the public key.").hint == "Export the public key."
    assert InvalidKey("It is broken.").hint == InvalidKey.hint


def test_errors_cross_a_process_border_whole():
    sent = BadSignature("Input 3 is signed wrongly.", 3, hint="Sign again.")
    received = pickle.loads(pickle.dumps(sent))
    assert (str(received), received.input_index, received.hint) == (str(sent), 3, "Sign again.")


def test_a_foreign_signature_is_a_bad_one():
    assert issubclass(ForeignSignature, BadSignature)
    assert BadSignature("On no input in particular.").input_index is None
