import pickle

from multisig.errors import BadSignature


def test_errors_cross_a_process_border_whole():
    sent = BadSignature("Input 3 is signed wrongly.", 3, hint="Sign again.")
    received = pickle.loads(pickle.dumps(sent))
    assert (str(received), received.input_index, received.hint) == (str(sent), 3, "Sign again.")
