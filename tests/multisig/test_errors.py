import pickle

from multisig.errors import BadSignature, InvalidKey


def test_a_hint_may_be_more_precise():
    assert InvalidKey("It is private.", hint="Export the public key.").hint == "Export the public key."
    assert InvalidKey("It is broken.").hint == InvalidKey.hint


def test_errors_cross_a_process_border_whole():
    sent = BadSignature("Input 3 is signed wrongly.", 3, hint="Sign again.")
    received = pickle.loads(pickle.dumps(sent))
    assert (str(received), received.input_index, received.hint) == (str(sent), 3, "Sign again.")
