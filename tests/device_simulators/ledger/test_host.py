"""The virtual Ledger believes no host: every proof and every preimage is checked (app-bitcoin-new,
doc/merkle.md).
"""

from hashlib import sha256

import pytest
from hwilib.devices.ledger_bitcoin.merkle import MerkleTree, element_hash

from device_simulators.ledger.host import is_right_child_at, leaf_preimage, root_of_proof

pytestmark = pytest.mark.anyio

PREIMAGE, PROOF, MORE = 0x40, 0x41, 0xA0


@pytest.mark.parametrize("size", [*range(1, 18), 64, 65, 100])
def test_proofs_lead_to_the_root_that_hosts_compute(size):
    leaves = [sha256(leaf_preimage(bytes((number,)))).digest() for number in range(size)]
    tree = MerkleTree(leaves)
    for index, leaf in enumerate(leaves):
        assert leaf == element_hash(bytes((index,)))
        assert root_of_proof(leaf, is_right_child_at(size, index), tree.prove_leaf(index)) == tree.root
