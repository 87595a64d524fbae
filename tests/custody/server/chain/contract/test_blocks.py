"""Blocks of the best chain, before and after a reorganisation."""

from custody.server.chain.backend import BlockRef


def best_chain(backend, first, last):
    return tuple(backend.block_at(height) for height in range(first, last + 1))


def test_the_tip_is_the_last_block_mined(rig):
    mined = rig.mine(3)
    assert rig.backend.tip() == mined[-1]
    assert best_chain(rig.backend, mined[0].height, mined[-1].height) == mined
    assert [block.height for block in mined] == list(range(mined[0].height, mined[0].height + 3))


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


def test_a_reorganisation_is_seen_when_nobody_looked_meanwhile(rig):
    rig.mine(2)
    rig.reorganise(2, 3)
    branch = rig.reorganise(3, 4)
    assert rig.backend.tip() == branch[-1]
    assert best_chain(rig.backend, branch[0].height, branch[-1].height) == branch
