"""Blocks of the best chain, before and after a reorganisation; and those with transactions that carry data,
and their callers: the output script that the first input spends.
"""

from dataclasses import replace

from custody.server.chain.backend import BlockRef
from multisig.script import op_return_script, p2wsh
from multisig.transaction import OutPoint, TxOut
from multisig.units import Sats
from tests.support.chains import confirmed_coin
from tests.support.regtest import open_script, spend


def best_chain(backend, first, last):
    return tuple(backend.block_at(height) for height in range(first, last + 1))


def test_outside_the_chain_there_is_no_block(rig):
    (tip,) = rig.mine()
    assert rig.backend.block_at(tip.height + 1) is None
    assert rig.backend.block_at(tip.height + 1_000_000) is None
    assert rig.backend.block_at(-1) is None


def test_the_genesis_block_is_regtests(rig):
    rig.mine()
    genesis = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206"
    assert rig.backend.block_at(0) == BlockRef(0, genesis, 1_296_688_602)


def test_a_longer_branch_takes_the_place_of_the_old_blocks(rig):
    old = rig.mine(4)
    branch = rig.reorganise(3, 4)
    assert rig.backend.tip() == branch[-1]
    assert best_chain(rig.backend, old[0].height, branch[-1].height) == (old[0], *branch)
    assert not set(old[1:]) & set(branch)


PREFIX = b"CPT"


def carrying(rig, data, amount=100_000):
    """A payment of a confirmed coin that also pushes data, and the script of that coin."""
    coin, number = confirmed_coin(rig, amount)
    plain = spend(coin, number, to=p2wsh(open_script(rig.fresh())))
    outputs = (*plain.outputs, TxOut(Sats(0), op_return_script(data)))
    return replace(plain, outputs=outputs), coin.script_pubkey


def test_above_the_tip_there_is_none(rig):
    (tip,) = rig.mine()
    assert rig.backend.data_at(tip.height + 1, PREFIX) is None
    assert rig.backend.data_at(-1, PREFIX) is None


def test_a_block_names_itself_and_its_parent(rig):
    before, block = rig.mine(2, empty=True)
    found = rig.backend.data_at(block.height, PREFIX)
    assert (found.ref, found.previous, found.transactions) == (block, before.hash, ())


def test_what_carries_such_data_stands_there_in_order_with_its_caller(rig):
    first, caller_of_first = carrying(rig, b"CPT one")
    other, _ = carrying(rig, b"other data")
    second, caller_of_second = carrying(rig, b"CPT two")
    block = rig.mine_block([first, other, second])
    found = rig.backend.data_at(block.height, PREFIX).transactions
    assert [(one.position, one.transaction.txid, one.caller) for one in found] == [
        (1, first.txid, caller_of_first),
        (3, second.txid, caller_of_second),
    ]


def test_a_caller_that_was_made_in_the_same_block_is_found(rig):
    coin, number = confirmed_coin(rig)
    between = rig.fresh()
    parent = spend(coin, number, to=p2wsh(open_script(between)))
    child, _ = carrying(rig, b"CPT")
    from_parent = replace(child.inputs[0], outpoint=OutPoint(parent.txid, 0))
    child = replace(child, inputs=(replace(from_parent, witness=(open_script(between),)),))
    child = replace(child, outputs=(TxOut(Sats(1_000), parent.outputs[0].script_pubkey), child.outputs[-1]))
    block = rig.mine_block([parent, child])
    (found,) = rig.backend.data_at(block.height, PREFIX).transactions
    assert found.caller == parent.outputs[0].script_pubkey


def test_p35_after_a_reorganisation_the_block_is_another_one(rig):
    carrier, _ = carrying(rig, b"CPT gone")
    block = rig.mine_block([carrier])
    rig.reorganise(1, 2)
    found = rig.backend.data_at(block.height, PREFIX)
    assert found.ref != block
    assert found.transactions == ()
