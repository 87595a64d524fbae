"""P35: whatever chain the indexer followed, and however often it turned, it ends as a fresh replay does, hash
by hash.
"""

from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select

from custody.server.domain.errors import ChainUnavailable
from custody.server.service.jobs.leases import Lead, LeaseLost
from custody.server.service.tokens import indexer as module
from custody.server.service.tokens.blocks import token_block
from custody.server.service.tokens.indexer import Indexer
from custody.server.store import Store
from custody.server.store.models import (
    LeaseRow,
    TokenBlockRow,
    TokenCellRow,
    TokenEffectRow,
    TokenTransactionRow,
)
from tests.multisig.tokens.machine.histories import Tape
from tests.support.examples import TIMES, examples
from tests.support.forked import in_child
from tests.support.platform import Clock
from tests.support.platform_crash import Steps
from tests.support.token_chains import CODES, Chain, Turning, is_ours
from tests.support.token_desk import stored_tokens as stored

TABLES = (TokenCellRow, TokenEffectRow, TokenTransactionRow, TokenBlockRow)


def follower(store: Store, chain: Chain) -> Indexer:
    return Indexer("regtest", store, {"regtest": chain}, 1, lambda _db, _chain: CODES.get, chain.proposed)


def emptied(store: Store) -> None:
    with store.write() as db:
        for table in TABLES:
            db.execute(delete(table))


def plain(number: int) -> Tape:
    """Some tape that is always the same."""
    return Tape(bytes((number * 37 + place * 11) % 251 for place in range(4_000)))


@settings(
    max_examples=examples(10),
    derandomize=TIMES == 1,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(tape=st.binary(min_size=60, max_size=600), batch=st.integers(1, 4))
def test_p35_random_chains_that_turn_end_as_a_fresh_replay(store, tape, batch):
    emptied(store)
    turning = Turning(Tape(tape))
    indexer = follower(store, turning.chain)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BATCH", batch)
        while not turning.tape.ended:
            act = turning.tape.below(3)
            if act:
                turning.grow(turning.tape.below(4) + 1)
            else:
                turning.turn(turning.tape.below(6))
            if turning.tape.below(2) == 0:
                indexer.look()
                assert stored(store) == turning.chain.replayed()
        indexer.look()
    assert stored(store) == turning.chain.replayed()


def test_the_histories_have_deployments_of_strangers_too(store):
    """Otherwise the tests here would say nothing of them."""
    turning = Turning(plain(1))
    turning.grow(60)
    follower(store, turning.chain).look()
    every = {
        each.txid
        for block in turning.chain.blocks
        for each in token_block(block).transactions
        if is_ours(each) is not None
    }
    ours = turning.chain.proposed(None, "", every)
    with store.read() as db:
        read = set(db.scalars(select(TokenTransactionRow.txid).where(TokenTransactionRow.txid.in_(every))))
    assert read == ours
    assert len(every) > len(ours) > 1


def test_catching_up_asks_for_each_block_once_and_writes_batch_by_batch(store, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 4)
    turning = Turning(plain(1))
    turning.grow(10)
    assert follower(store, turning.chain).look()
    # Two questions beyond the tip: the last batch is short, and the next one empty.
    assert turning.chain.told == 12
    assert stored(store) == turning.chain.replayed()


def test_a_backend_that_fails_in_the_middle_costs_its_batch_alone(store, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 4)
    turning = Turning(plain(2))
    turning.grow(10)
    whole = turning.chain.data_at

    def failing(height: int, prefix: bytes):
        if height == 7:
            raise ChainUnavailable("It is away.")
        return whole(height, prefix)

    monkeypatch.setattr(turning.chain, "data_at", failing)
    indexer = follower(store, turning.chain)
    with pytest.raises(ChainUnavailable):
        indexer.look()
    assert stored(store)[1] == turning.chain.replayed()[1][:4]
    monkeypatch.setattr(turning.chain, "data_at", whole)
    indexer.look()
    assert stored(store) == turning.chain.replayed()


def test_a_block_whose_parent_is_another_is_not_read(store):
    """A chain that turns between two questions, or a backend that lies: no block is put on one that is not
    its parent.
    """
    turning, other = Turning(plain(3)), Turning(plain(4), branches=9)
    turning.grow(6)
    other.grow(9)
    mixed = Chain(turning.chain.blocks[:4] + other.chain.blocks[4:])
    indexer = follower(store, mixed)
    indexer.look()
    assert stored(store)[1] == turning.chain.replayed()[1][:4]
    mixed.blocks[4:] = turning.chain.blocks[4:]
    indexer.look()
    assert stored(store) == turning.chain.replayed()


def test_of_two_processes_one_follows_and_the_one_that_slept_writes_nothing(store):
    clock, numbers = Clock(), count(1)
    turning = Turning(plain(5))
    turning.grow(3)
    first, second = (
        Lead(store, clock, lambda size: next(numbers).to_bytes(size, "big"), "tokens of regtest")
        for _ in range(2)
    )
    with first.work() as held:
        assert held is not None
        follower(store, turning.chain).look(held)
        with second.work() as nothing:
            assert nothing is None
        turning.turn(2)
        clock.advance(minutes=5)
        with second.work() as taken:
            assert taken is not None
            with pytest.raises(LeaseLost):
                follower(store, turning.chain).look(held)
            follower(store, turning.chain).look(taken)
    assert stored(store) == turning.chain.replayed()


@pytest.mark.parametrize("act", ["catching up", "turning"])
def test_p35_killed_at_any_statement_or_commit_another_process_goes_on(database, act, monkeypatch):
    """The killed one is a forked child; each time the beginning is the same."""
    monkeypatch.setattr(module, "BATCH", 3)
    turning = Turning(plain(6))
    turning.grow(5)
    kills = 0
    for fatal in count(1):
        with_beginning(database, turning.chain if act == "turning" else None)
        before = list(turning.chain.blocks)
        if act == "turning":
            turning.chain.blocks[:] = turned(before)
        was_killed = in_child(lambda fatal=fatal: look_and_die(database, turning.chain, fatal)) != 0
        kills += was_killed
        in_child(lambda: look_and_die(database, turning.chain, None))
        store = Store.open(database)
        try:
            assert stored(store) == turning.chain.replayed(), f"killed at step {fatal}"
        finally:
            store.close()
        turning.chain.blocks[:] = before
        if not was_killed:
            break
    assert kills > 5


def with_beginning(database: str, chain: Chain | None) -> None:
    store = Store.open(database)
    try:
        emptied(store)
        with store.write() as db:
            db.execute(delete(LeaseRow))
        if chain is not None:
            follower(store, chain).look()
    finally:
        store.close()


def turned(blocks: list) -> list:
    other = Turning(plain(6))
    other.grow(5)
    assert [block.ref for block in other.chain.blocks] == [block.ref for block in blocks]
    other.turn(4)
    return other.chain.blocks


def look_and_die(database: str, chain: Chain, fatal: int | None) -> None:
    store = Store.open(database)
    steps = Steps(fatal)
    steps.watch_database()
    steps.arm()
    follower(store, chain).look()
