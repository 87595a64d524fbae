"""What the shapes write down for themselves, so that a command starts without what it was written down from."""

import multisig
from signerd.shapes import addresses


def test_chains_and_indices_are_the_core_s_own():
    named = (addresses.RECEIVE, addresses.CHANGE, addresses.MAX_INDEX)
    assert named == (multisig.RECEIVE, multisig.CHANGE, multisig.MAX_INDEX)
