"""The index of tokens over a real chain: it is what a replay of the chain says, whatever was taken back
meanwhile.
"""

from contextlib import closing
from dataclasses import dataclass, field, replace

import pytest
from sqlalchemy import Engine, event, func, select

from custody.server.chain.backend import Accepted
from custody.server.chain.embedded import EmbeddedChain
from custody.server.domain.errors import ChainUnavailable
from custody.server.service.jobs.leases import Held, LeaseLost
from custody.server.service.tokens.blocks import token_block
from custody.server.service.tokens.indexer import Indexer
from custody.server.store import Store
from custody.server.store.models import TokenBlockRow, TokenTransactionRow
from multisig.script import op_return_script, p2wsh
from multisig.tokens import Bytecode, Function, TokenAmount, TokenCall, encode_payload
from multisig.tokens.machine import GENESIS_STATE, Cell, TokenCells, judge_block
from multisig.tokens.payload import MAGIC
from multisig.transaction import OutPoint, Transaction, TxIn, TxOut
from multisig.units import Sats
from tests.multisig.tokens.samples import bytecode
from tests.support.regtest import FakeClock, open_address, open_script
from tests.support.token_desk import stored_tokens

OWNER, BOB = 1, 2
AMOUNT = 100_000


def holder(number: int) -> bytes:
    return p2wsh(open_script(number))


@dataclass
class Tokens:
    """A chain on which numbered open scripts deploy and call, and an indexer that follows it. ``strangers``:
    the deployments that no workspace proposed here.
    """

    chain: EmbeddedChain
    store: Store
    blobs: dict[bytes, Bytecode] = field(default_factory=dict)
    coins: dict[int, list[OutPoint]] = field(default_factory=dict)
    strangers: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.indexer = self.follower(self.chain, 0)

    def follower(self, backend, first: int | None) -> Indexer:
        return Indexer(
            "regtest",
            self.store,
            {"regtest": backend},
            first,
            lambda _db, _chain: self.blobs.get,
            lambda _db, _chain, txids: set(txids) - self.strangers,
        )

    def fund(self, number: int, count: int = 5) -> None:
        for _ in range(count):
            txid = self.chain.fund(open_address(number), Sats(AMOUNT))
            outputs = self.chain.transaction(txid).transaction.outputs
            vout = next(n for n, out in enumerate(outputs) if out.script_pubkey == holder(number))
            self.coins.setdefault(number, []).append(OutPoint(txid, vout))
        self.chain.mine(1)

    def carry(self, number: int, payload, *, extra: bytes = b"") -> str:
        """A transaction whose first input spends a coin of that script, with the payload; waits in the
        mempool.
        """
        data = encode_payload(payload) + extra
        transaction = Transaction(
            version=2,
            inputs=(TxIn(self.coins[number].pop(), 0xFFFFFFFD, b"", (open_script(number),)),),
            outputs=(TxOut(Sats(AMOUNT - 1_000), holder(number)), TxOut(Sats(0), op_return_script(data))),
            locktime=0,
        )
        assert isinstance(self.chain.broadcast(transaction), Accepted)
        self.coins[number].insert(0, OutPoint(transaction.txid, 0))
        return transaction.txid

    def replayed(self) -> tuple[TokenCells, list[bytes]]:
        """The whole chain judged anew, in memory."""
        state, hashes = TokenCells(), [GENESIS_STATE]
        for height in range(self.chain.tip().height + 1):
            block = token_block(self.chain.data_at(height, MAGIC))
            ours = tuple(each for each in block.transactions if each.txid not in self.strangers)
            done = judge_block(replace(block, transactions=ours), state, self.blobs.get, hashes[-1])
            state.apply(done.effects)
            hashes.append(done.state)
        return state, hashes[1:]

    def stored(self) -> tuple[dict, list[bytes]]:
        return stored_tokens(self.store)

    def check(self) -> None:
        state, hashes = self.replayed()
        assert self.stored() == (state.cells, hashes)


def gold() -> Bytecode:
    return bytecode(owner_script=holder(OWNER))


@pytest.fixture
def tokens(tmp_path, store):
    with closing(EmbeddedChain(tmp_path / "chain", clock=FakeClock())) as chain:
        found = Tokens(chain, store)
        found.fund(OWNER)
        found.fund(BOB, 3)
        found.blobs[gold().deployment.bytecode_hash] = gold()
        yield found


def deployed(tokens: Tokens) -> str:
    """A token that has been started."""
    contract_id = tokens.carry(OWNER, gold().deployment)
    tokens.chain.mine(1)
    tokens.carry(OWNER, TokenCall(contract_id=contract_id, function=Function.INIT))
    tokens.chain.mine(1)
    return contract_id


def transfer(contract_id: str, amount: int, to: int) -> TokenCall:
    return TokenCall(
        contract_id=contract_id, function=Function.TRANSFER, amount=TokenAmount(amount), address=holder(to)
    )


def test_p35_a_reorganisation_takes_a_call_back_and_its_return_brings_it_again(tokens):
    contract_id = deployed(tokens)
    with pytest.raises(LeaseLost):
        tokens.indexer.look(Held("tokens of regtest", "somebody else's"))
    assert tokens.stored() == ({}, []), "without the lease nothing is written"
    assert tokens.indexer.look()
    assert not tokens.indexer.look()
    tokens.carry(OWNER, transfer(contract_id, 40, BOB))
    tokens.chain.mine(1)
    assert tokens.indexer.look()
    assert tokens.stored()[0][contract_id, Cell.BALANCE, holder(BOB)] == 40
    tokens.chain.reorganise(1, 2)
    assert tokens.indexer.look()
    tokens.check()
    assert (contract_id, Cell.BALANCE, holder(BOB)) not in tokens.stored()[0]
    tokens.chain.mine(1)
    tokens.indexer.look()
    tokens.check()
    assert tokens.stored()[0][contract_id, Cell.BALANCE, holder(BOB)] == 40


def test_p33_with_its_deployment_gone_nothing_of_a_token_is_left(tokens):
    deployed(tokens)
    tokens.indexer.look()
    tokens.chain.reorganise(2, 3)
    tokens.indexer.look()
    tokens.check()
    assert tokens.stored()[0] == {}


def test_a_failed_call_is_recorded_with_its_reason(tokens):
    contract_id = deployed(tokens)
    txid = tokens.carry(BOB, transfer(contract_id, 1, OWNER))
    malformed = tokens.carry(BOB, transfer(contract_id, 1, OWNER), extra=b"!")
    tokens.chain.mine(1)
    tokens.indexer.look()
    with tokens.store.read() as db:
        rows = {row.txid: row for row in db.scalars(select(TokenTransactionRow))}
    assert rows[txid].failure == "insufficient-balance"
    assert (rows[malformed].failure, rows[malformed].contract_id) == ("malformed", None)


def test_a_deployment_that_was_not_proposed_here_has_no_effect(tokens):
    """Even if its bytecode is known, and even if the owner of ours made it with the very same payload."""
    tokens.fund(OWNER)
    ours = deployed(tokens)
    tokens.strangers.add(theirs := tokens.carry(OWNER, gold().deployment))
    beside = tokens.carry(BOB, transfer(ours, 1, OWNER))
    (ref,) = tokens.chain.mine(1)
    calls = [
        tokens.carry(OWNER, TokenCall(contract_id=theirs, function=Function.INIT)),
        tokens.carry(OWNER, transfer(ours, 40, BOB)),
        tokens.carry(OWNER, transfer(theirs, 40, BOB)),
    ]
    tokens.chain.mine(1)
    tokens.indexer.look()
    tokens.check()
    cells = tokens.stored()[0]
    assert {contract_id for contract_id, _, _ in cells} == {ours}
    assert cells[ours, Cell.BALANCE, holder(BOB)] == 40
    with tokens.store.read() as db:
        rows = {row.txid: row for row in db.scalars(select(TokenTransactionRow))}
    assert theirs not in rows
    assert [rows[txid].failure for txid in calls] == ["unknown-contract", None, "unknown-contract"]
    carriers = tokens.chain.data_at(ref.height, MAGIC).transactions
    places = {carrier.transaction.txid: carrier.position for carrier in carriers}
    assert (rows[beside].position, len(places)) == (places[beside], 2), "its place in the chain's block"
    tokens.chain.reorganise(3, 4)
    tokens.indexer.look()
    tokens.check()


@dataclass
class Shorter:
    """A backend that has the same chain up to that height: a node that indexes anew, or another that lags."""

    chain: EmbeddedChain
    height: int
    # From here on it has no block, whatever it names its tip.
    lacks_from: int | None = None

    @property
    def network(self):
        return self.chain.network

    def tip(self):
        return self.chain.block_at(self.height)

    def block_at(self, height: int):
        has = self.height + 1 if self.lacks_from is None else self.lacks_from
        return self.chain.block_at(height) if height < has else None

    def data_at(self, height: int, prefix: bytes):
        return self.chain.data_at(height, prefix) if height <= self.height else None


@pytest.mark.parametrize("first", [0, 4, None], ids=["the beginning", "a height", "a tip"])
def test_a_backend_that_is_behind_or_lacks_blocks_below_its_tip_takes_nothing_back(tokens, first):
    """However short it is: what it lacks was not taken back. An index that is emptied loses every token."""
    tokens.follower(tokens.chain, first).look()
    contract_id = deployed(tokens)
    tokens.follower(tokens.chain, first).look()
    before, lowest, tip = tokens.stored(), read_first(tokens), tokens.chain.tip().height
    assert before[0][contract_id, Cell.SUPPLY, b""] == 100_000
    # A block less, its first block, less than that, the genesis; and gaps below its tip.
    shorter = [Shorter(tokens.chain, height) for height in {tip - 1, lowest, max(lowest - 1, 0), 0}]
    gaps = [Shorter(tokens.chain, tip, lacks_from) for lacks_from in {lowest, tip - 1, tip}]
    for backend in (*shorter, *gaps):
        with pytest.raises(ChainUnavailable, match="behind"):
            tokens.follower(backend, first).look()
        assert tokens.stored() == before, backend
    tokens.chain.mine(1)
    assert tokens.follower(tokens.chain, first).look()
    assert tokens.stored()[0] == before[0]


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_a_shorter_branch_that_shows_its_fork_is_followed(tokens, depth):
    """Testnets change their difficulty: the best chain may have fewer blocks than the one that was left."""
    deployed(tokens)
    tokens.chain.mine(3)
    tokens.indexer.look()
    before = tokens.chain.tip().height
    tokens.chain.reorganise(depth, depth + 1)
    shorter = Shorter(tokens.chain, before - depth + 1)
    tokens.follower(shorter, 0).look()
    assert len(tokens.stored()[1]) == shorter.height + 1
    tokens.indexer.look()
    tokens.check()


def test_a_chain_that_is_below_the_first_block_to_be_read_is_waited_for(tokens):
    first = tokens.chain.tip().height + 2
    with pytest.raises(ChainUnavailable, match="are read from block"):
        tokens.follower(tokens.chain, first).look()
    tokens.chain.mine(2)
    assert tokens.follower(tokens.chain, first).look()
    assert read_first(tokens) == first


def read_first(tokens: Tokens) -> int:
    with tokens.store.read() as db:
        return db.scalar(select(func.min(TokenBlockRow.height)))


def test_a_deployment_with_a_long_list_asks_no_more_than_one_without(tokens):
    """The writers' lock is held meanwhile: with a question for each holder, a block of such deployments held
    it for minutes.
    """
    listed = tuple(sorted(p2wsh(open_script(number)) for number in range(100, 400)))
    code = bytecode(owner_script=holder(OWNER), whitelist=listed)
    tokens.blobs[code.deployment.bytecode_hash] = code
    tokens.indexer.look()
    asked = []

    def note(*args) -> None:
        asked.append(args[2])

    event.listen(Engine, "before_cursor_execute", note)
    try:
        for payload in (gold().deployment, code.deployment):
            tokens.carry(OWNER, payload)
            tokens.chain.mine(1)
            tokens.indexer.look()
            asked.append("")
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    short = asked.index("")
    assert len(asked) < 2 * short + 10
    tokens.check()
    assert sum(cell is Cell.LISTED for _, cell, _ in tokens.stored()[0]) == len(listed)


def test_an_index_that_began_at_a_tip_begins_there_again_after_a_reorganisation_below_it(tokens):
    """A new beginning at the tip of that day would leave out the deployments between, and their tokens for
    ever.
    """
    indexer = tokens.follower(tokens.chain, None)
    indexer.look()
    contract_id = tokens.carry(OWNER, gold().deployment)
    tokens.chain.reorganise(3, 4)
    tokens.chain.mine(3)
    indexer.look()
    assert tokens.stored()[0][contract_id, Cell.OWNER, b""] == holder(OWNER)
    indexer.look()
    assert tokens.stored()[0].keys() == tokens.replayed()[0].cells.keys()
