"""Of two processes that follow a chain, the slower one never overwrites a newer view with an older one."""

import secrets
from collections.abc import Callable, Collection
from dataclasses import replace

import pytest
from sqlalchemy import select

from custody.server.chain.backend import BlockRef, ChainTransaction, FoundOutput
from custody.server.errors import ChainUnavailable
from custody.server.jobs.leases import LEASE, Lease, LeaseLost
from custody.server.store.models import ChainBlockRow, ChainCoinRow
from multisig import Sats
from tests.support.backends import Unreliable
from tests.support.custody import Desk


class Behind(Unreliable):
    """A node cut off from the network, with only the first blocks."""

    height = 0

    def tip(self) -> BlockRef:
        block = self._up().block_at(self.height)
        assert block is not None
        return block

    def block_at(self, height: int) -> BlockRef | None:
        return self._up().block_at(height) if height <= self.height else None

    def outputs_to(self, scripts: Collection[bytes], *, since_height: int = 0) -> tuple[FoundOutput, ...]:
        found = self._up().outputs_to(scripts, since_height=since_height)
        return tuple(each for each in found if each.block is not None and each.block.height <= self.height)


class Slow(Unreliable):
    """Between what it has seen and what it does about it, something happens."""

    meanwhile: Callable[[], object] = staticmethod(lambda: None)

    def transaction(self, txid: str) -> ChainTransaction | None:
        found = self._up().transaction(txid)
        happens, self.meanwhile = self.meanwhile, lambda: None
        happens()
        return found


@pytest.fixture
def follow(desk: Desk):
    """A process of its own each: a lead, and a watcher before a backend."""

    def make(backend) -> Callable[[], bool]:
        background = replace(desk.world.platform.background, backends={"regtest": backend})
        (watcher,) = background.watchers()
        lead = Lease(background.store, desk.world.clock, secrets.token_bytes, "watcher of regtest")

        def look() -> bool:
            with lead.work() as held:
                return held is not None and watcher.look(held)

        return look

    return make


def seen(desk: Desk) -> tuple[int | None, int]:
    return max((block.height for block in desk.rows(ChainBlockRow)), default=None), len(
        desk.rows(ChainCoinRow)
    )


def test_who_was_stopped_past_its_lease_does_not_undo_what_another_saw(desk: Desk, follow) -> None:
    node = Slow(desk.chain)
    slow, other = follow(node), follow(desk.chain)
    desk.chain.fund(desk.vault["address"], Sats(100_000))
    desk.chain.mine(1)

    def sleep() -> None:
        """The process is stopped; the chain grows, and another process follows it."""
        desk.world.clock.now += LEASE
        desk.chain.fund(desk.vault["address"], Sats(200_000))
        desk.chain.mine(3)
        assert other()

    node.meanwhile = sleep
    with pytest.raises(LeaseLost):
        slow()
    tip = desk.chain.tip().height
    assert seen(desk) == (tip, 2)
    assert not slow(), "another has it"
    assert seen(desk) == (tip, 2)


def test_who_stands_by_reads_no_chain_and_takes_over_with_fresh_eyes(desk: Desk, follow) -> None:
    """What it saw last time is not what the other one wrote since: here from a node that was behind."""
    first, second = follow(desk.chain), follow(desk.chain)
    desk.deposit(100_000)
    assert first()
    tip = desk.chain.tip().height
    desk.world.clock.now += LEASE
    behind = Unreliable(desk.chain)
    third = follow(behind)
    assert third()
    assert not first()
    with desk.store.write() as db:
        block = db.scalars(select(ChainBlockRow).order_by(ChainBlockRow.height.desc())).first()
        db.delete(block)
    assert seen(desk)[0] == tip - 1
    desk.world.clock.now += LEASE
    assert first(), "the same tip as it saw before, and all the same it writes"
    assert seen(desk)[0] == tip
    assert not second()


@pytest.mark.parametrize("kept", [288, 2])
def test_p36_a_node_that_is_behind_takes_nothing_back(desk: Desk, follow, monkeypatch, kept: int) -> None:
    """A block that this node does not have yet has not left the chain:
    another node may have shown it before.
    """
    for module in ("deposits", "watcher"):
        monkeypatch.setattr(f"custody.server.network.{module}.KEPT_BLOCKS", kept)
    desk.deposit(100_000)
    tip = desk.chain.tip().height
    node = Behind(desk.chain)
    node.height = tip - 6
    look = follow(node)
    with pytest.raises(ChainUnavailable, match="behind"):
        look()
    assert seen(desk) == (tip, 1)
    node.height = desk.chain.mine(1)[0].height
    assert look(), "it has caught up"
    assert seen(desk) == (tip + 1, 1)


def test_a_deposit_that_leaves_the_mempool_while_it_is_read_holds_nothing_up(desk, monkeypatch):
    """It may be back at the next look, which shows what the last one showed."""
    (mined,), whole = desk.deposit(100_000, blocks=1), desk.chain.transaction
    address = desk.wallets()[0]["receive_address"]
    leaves = desk.chain.fund(address, Sats(50_000))
    desk.chain.mine(1, empty=True)
    monkeypatch.setattr(desk.chain, "transaction", lambda txid: None if txid == leaves else whole(txid))
    desk.watcher.look()
    assert (seen(desk), {coin.txid for coin in desk.rows(ChainCoinRow)}) == (
        (desk.chain.tip().height, 1),
        {mined},
    )
    monkeypatch.setattr(desk.chain, "transaction", whole)
    desk.watcher.look()
    assert {coin.txid for coin in desk.rows(ChainCoinRow)} == {mined, leaves}
    desk.chain.fund(address, Sats(60_000))
    desk.chain.mine(1)
    monkeypatch.setattr(desk.chain, "transaction", lambda _txid: None)
    with pytest.raises(ChainUnavailable, match="left the chain"):
        desk.watcher.look()
