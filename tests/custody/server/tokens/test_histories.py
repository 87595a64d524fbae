"""P35: whatever chain the indexer followed, and however often it turned, it ends as a fresh replay does, hash
by hash.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, delete, event, select

from custody.server.chain.backend import BlockRef
from custody.server.errors import ChainUnavailable
from custody.server.jobs.leases import Held, LeaseLost
from custody.server.store import Store
from custody.server.store.models import (
    TokenBlockRow,
    TokenCellRow,
    TokenEffectRow,
    TokenTransactionRow,
)
from custody.server.tokens import indexer as module
from custody.server.tokens.indexer import Indexer
from multisig.tokens import encode_payload
from multisig.tokens.machine import Cell
from tests.multisig.tokens.machine.histories import Tape
from tests.multisig.tokens.samples import OWNER, bytecode
from tests.support.examples import TIMES, examples
from tests.support.token_chains import CODES, Chain, Turning, block_of
from tests.support.token_desk import stored_tokens as stored

TABLES = (TokenCellRow, TokenEffectRow, TokenTransactionRow, TokenBlockRow)


def follower(store: Store, chain: Chain, first: int | None = 1) -> Indexer:
    return Indexer("regtest", store, {"regtest": chain}, first, lambda _db, _chain: CODES.get, chain.proposed)


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
    """Also where the backend failed in the middle, or another process has the lease by now."""
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
                without_the_lease(store, indexer, turning.chain)
                failing_in_the_middle(indexer, turning)
                indexer.look()
                assert stored(store) == turning.chain.replayed()
        indexer.look()
    assert stored(store) == turning.chain.replayed()


def without_the_lease(store: Store, indexer: Indexer, chain: Chain) -> None:
    """Nothing is written, neither forward nor back."""
    before = stored(store)
    if before[1] != chain.replayed()[1]:
        with pytest.raises(LeaseLost):
            indexer.look(Held("tokens of regtest", "somebody else's"))
    assert stored(store) == before


def failing_in_the_middle(indexer: Indexer, turning: Turning) -> None:
    whole, away = turning.chain.data_at, turning.tape.below(len(turning.chain.blocks)) + 1

    def failing(height: int, prefix: bytes):
        if height == away:
            raise ChainUnavailable("It is away.")
        return whole(height, prefix)

    with pytest.MonkeyPatch.context() as patch, suppress(ChainUnavailable):
        patch.setattr(turning.chain, "data_at", failing)
        indexer.look()


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


@contextmanager
def failing_at(fatal: int) -> Iterator[list[str]]:
    """The database fails at the n-th statement that writes. Yields every statement."""
    told: list[str] = []
    numbers = count(1)

    def statement(_connection, _cursor, text: str, *_rest) -> None:
        told.append(text)
        if not text.startswith(("BEGIN", "SELECT", "PRAGMA", "SHOW", "SET")) and next(numbers) == fatal:
            raise RuntimeError("the disk is full")

    event.listen(Engine, "before_cursor_execute", statement)
    try:
        yield told
    finally:
        event.remove(Engine, "before_cursor_execute", statement)


def test_p35_a_failure_at_any_statement_leaves_what_the_next_look_goes_on_from(store, monkeypatch):
    """Catching up, and turning back."""
    monkeypatch.setattr(module, "BATCH", 3)
    failures = 0
    for fatal in count(1):
        emptied(store)
        turning = Turning(plain(6))
        turning.grow(5)
        follower(store, turning.chain).look()
        turning.turn(4)
        has_failed = False
        with failing_at(fatal), suppress(RuntimeError):
            has_failed = True
            follower(store, turning.chain).look()
            has_failed = False
        follower(store, turning.chain).look()
        assert stored(store) == turning.chain.replayed(), f"failed at statement {fatal}"
        failures += has_failed
        if not has_failed:
            break
    assert failures > 5


@dataclass
class Boasting(Chain):
    """It names a tip that it does not have."""

    boasted: BlockRef | None = None

    def tip(self) -> BlockRef:
        return self.boasted or super().tip()


def heights(store: Store) -> list[int]:
    with store.read() as db:
        return list(db.scalars(select(TokenBlockRow.height).order_by(TokenBlockRow.height)))


@pytest.mark.parametrize("first", [1, 3, None], ids=["the beginning", "a height", "a tip"])
def test_a_backend_that_is_behind_or_lacks_blocks_below_its_tip_takes_nothing_back(store, first):
    """However short it is: what it lacks was not taken back. An index that is emptied loses every token."""
    turning = Turning(plain(1))
    turning.grow(4)
    follower(store, turning.chain, first).look()
    turning.grow(6)
    follower(store, turning.chain, first).look()
    before, lowest, blocks = stored(store), heights(store)[0], turning.chain.blocks
    shorter = [Chain(blocks[:height]) for height in {9, lowest, max(lowest - 1, 1), 1}]
    gaps = [Boasting(blocks[:height], boasted=blocks[-1].ref) for height in {lowest - 1, 8, 9}]
    for backend in (*shorter, *gaps):
        with pytest.raises(ChainUnavailable, match="behind"):
            follower(store, backend, first).look()
        assert stored(store) == before, backend
    turning.grow(1)
    assert follower(store, turning.chain, first).look()


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_a_shorter_branch_that_shows_its_fork_is_followed(store, depth):
    """Testnets change their difficulty: the best chain may have fewer blocks than the one that was left."""
    turning = Turning(plain(2))
    turning.grow(10)
    follower(store, turning.chain).look()
    turning.turn(depth)
    shorter = Chain(turning.chain.blocks[: 10 - depth + 1])
    follower(store, shorter).look()
    assert stored(store) == shorter.replayed()
    follower(store, turning.chain).look()
    assert stored(store) == turning.chain.replayed()


def test_a_chain_that_is_below_the_first_block_to_be_read_is_waited_for(store):
    turning = Turning(plain(3))
    turning.grow(3)
    with pytest.raises(ChainUnavailable, match="are read from block"):
        follower(store, turning.chain, 5).look()
    turning.grow(3)
    assert follower(store, turning.chain, 5).look()
    assert heights(store) == [5, 6]


def test_an_index_that_began_at_a_tip_begins_there_again_after_a_reorganisation_below_it(store):
    """A new beginning at the tip of that day would leave out the deployments between, and their tokens for
    ever.
    """
    turning = Turning(plain(4))
    turning.grow(6)
    indexer = follower(store, turning.chain, None)
    indexer.look()
    assert heights(store) == [6]
    turning.turn(3)
    turning.grow(2)
    indexer.look()
    assert heights(store) == [5, 6, 7, 8, 9]


def test_a_deployment_with_a_long_list_asks_no_more_than_one_without(store, monkeypatch):
    """The writers' lock is held meanwhile: with a question for each holder, a block of such deployments held
    it for minutes.
    """
    counts, chain = [], Chain()
    for height, listed in enumerate((0, 300), start=1):
        whitelist = tuple(
            sorted(b"\x00\x20" + sha256(bytes([n % 256, n // 256])).digest() for n in range(listed))
        )
        code = bytecode(ticker=f"T{height}", whitelist=whitelist)
        monkeypatch.setitem(CODES, code.deployment.bytecode_hash, code)
        deployment = (f"{height:064x}".replace("0", "a"), OWNER.hex(), encode_payload(code.deployment))
        previous = chain.blocks[-1].ref.hash if chain.blocks else "00" * 32
        chain.blocks.append(block_of(height, bytes([height]) * 32, previous, [deployment]))
        with failing_at(0) as told:
            follower(store, chain).look()
        counts.append(len(told))
    assert sum(cell is Cell.LISTED for _, cell, _ in stored(store)[0]) == 300
    assert counts[1] < counts[0] + 10
