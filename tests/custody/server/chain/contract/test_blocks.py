"""Blocks of the best chain, before and after a reorganisation; and those with transactions that carry data,
and their callers: the output script that the first input spends.
"""

from dataclasses import replace

from custody.server.chain.backend import BlockRef
from multisig.script import op_return_script
from multisig.transaction import OutPoint, TxIn, TxOut
from multisig.units import Sats
from tests.support.chains import confirmed_coin
from tests.support.regtest import open_output, open_script, spend

PREFIX = b"CPT"
GENESIS = BlockRef(0, "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206", 1_296_688_602)


def carrying(rig, data, amount=100_000):
    """A payment of a confirmed coin that also pushes data, and the script of that coin."""
    coin, number = confirmed_coin(rig, amount)
    plain = spend(coin, number, to=open_output(rig.fresh()))
    outputs = (*plain.outputs, TxOut(Sats(0), op_return_script(data)))
    return replace(plain, outputs=outputs), coin.script_pubkey


def test_a_block_names_itself_and_its_parent_and_outside_the_chain_there_is_none(rig):
    before, block = rig.mine(2, empty=True)
    for height in (block.height + 1, block.height + 1_000_000, -1):
        assert rig.backend.block_at(height) is None
        assert rig.backend.data_at(height, PREFIX) is None
    assert rig.backend.block_at(0) == GENESIS
    found = rig.backend.data_at(block.height, PREFIX)
    assert (found.ref, found.previous, found.transactions) == (block, before.hash, ())


def test_what_carries_such_data_stands_there_in_order_with_its_caller(rig):
    """Also a caller that was made in the same block."""
    first, caller_of_first = carrying(rig, b"CPT one")
    other, _ = carrying(rig, b"other data")
    second, caller_of_second = carrying(rig, b"CPT two")
    coin, number = confirmed_coin(rig)
    between = rig.fresh()
    parent = spend(coin, number, to=open_output(between))
    child = replace(
        second,
        inputs=(TxIn(OutPoint(parent.txid, 0), 0xFFFFFFFD, b"", (open_script(between),)),),
        outputs=(TxOut(Sats(1_000), parent.outputs[0].script_pubkey), second.outputs[-1]),
    )
    block = rig.mine_block([first, other, second, parent, child])
    found = rig.backend.data_at(block.height, PREFIX).transactions
    assert [(one.position, one.transaction.txid, one.caller) for one in found] == [
        (1, first.txid, caller_of_first),
        (3, second.txid, caller_of_second),
        (5, child.txid, parent.outputs[0].script_pubkey),
    ]


def test_p35_a_longer_branch_takes_the_place_of_the_old_blocks(rig):
    carrier, _ = carrying(rig, b"CPT gone")
    before, gone = rig.backend.tip(), rig.mine_block([carrier])
    rig.mine(3)
    branch = rig.reorganise(4, 5)
    assert rig.backend.tip() == branch[-1]
    heights = range(before.height, branch[-1].height + 1)
    assert tuple(map(rig.backend.block_at, heights)) == (before, *branch)
    found = rig.backend.data_at(gone.height, PREFIX)
    assert (found.ref, found.transactions) == (branch[0], ())
