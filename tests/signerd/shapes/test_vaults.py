"""What the shapes write down for themselves, so that a command starts without what it was written
down from.
"""

import multisig
from signerd.shapes import vaults


def test_chains_and_indices_are_the_core_s_own():
    named = (vaults.RECEIVE, vaults.CHANGE, vaults.MAX_INDEX)
    assert named == (multisig.RECEIVE, multisig.CHANGE, multisig.MAX_INDEX)
