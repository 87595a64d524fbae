"""Blocks with the transactions that carry data, and their callers:
the output script that the first input spends.
"""

from dataclasses import replace

from multisig.script import op_return_script, p2wsh
from multisig.transaction import OutPoint, TxOut
from multisig.units import Sats
from tests.support.chains import confirmed_coin
from tests.support.regtest import open_script, spend

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


def test_other_data_is_left_out(rig):
    carriers = [carrying(rig, data)[0] for data in (b"CP", b"cpt", b"XCPT")]
    block = rig.mine_block(carriers)
    assert rig.backend.data_at(block.height, PREFIX).transactions == ()


def test_p35_after_a_reorganisation_the_block_is_another_one(rig):
    carrier, _ = carrying(rig, b"CPT gone")
    block = rig.mine_block([carrier])
    rig.reorganise(1, 2)
    found = rig.backend.data_at(block.height, PREFIX)
    assert found.ref != block
    assert found.transactions == ()
