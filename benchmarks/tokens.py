"""Deriving the state of tokens in memory, compared with the slow reference machine of the tests.

The slow one copies the whole state for each transaction. Both must end with the same state hash. Then a long
chain is caught up, its last blocks are rolled back, and its memory is measured. Times are processor seconds,
which other programs do not affect.
"""

import gc
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from benchmarks.idle import memory_mb
from multisig.tokens import Bytecode, Function, TokenAmount, TokenCall, encode_payload
from multisig.tokens.machine import (
    GENESIS_STATE,
    BlockOutcome,
    TokenBlock,
    TokenCells,
    TokenTransaction,
    judge_block,
)
from tests.multisig.tokens.machine import independent

OWNER = bytes.fromhex("0020") + bytes(32)
CONTRACT = "c0" * 32
CODE = Bytecode(
    name="Gold",
    ticker="GOLD",
    decimals=0,
    total_supply=TokenAmount(10**15),
    max_supply=TokenAmount(10**15),
    whitelist_enabled=False,
    icon="",
    whitelist=(),
    owner_script=OWNER,
)
# Needed at every call, so that an indexer caches it too.
CODE_HASH = CODE.deployment.bytecode_hash
BLOBS = {CODE_HASH.hex(): CODE.blob}
CALLS_A_BLOCK = 100
HOLDERS = (10, 100)
COMPARED_CALLS = 500
ROUNDS = 5
CAUGHT_UP = 100_000
CAUGHT_UP_HOLDERS = 20_000
TAKEN_BACK = 100


def holder(number: int) -> bytes:
    return bytes.fromhex("0014") + number.to_bytes(20, "big")


def transaction(number: int, caller: bytes, payload: bytes) -> TokenTransaction:
    return TokenTransaction(hashlib.sha256(number.to_bytes(8, "big")).hexdigest(), caller, payload)


def transfer(number: int, caller: bytes, receiver: bytes, amount: int) -> TokenTransaction:
    call = TokenCall(
        contract_id=CONTRACT, function=Function.TRANSFER, amount=TokenAmount(amount), address=receiver
    )
    return transaction(number, caller, encode_payload(call))


def blocks(calls: int, holders: int) -> Iterator[TokenBlock]:
    """A deployment, its init, then successful transfers: every other one from the owner, the rest between
    holders.
    """
    start = encode_payload(TokenCall(contract_id=CONTRACT, function=Function.INIT))
    yield block(1, (TokenTransaction(CONTRACT, OWNER, encode_payload(CODE.deployment)),))
    yield block(2, (transaction(0, OWNER, start),))
    for height, first in enumerate(range(0, calls, CALLS_A_BLOCK), 3):
        numbers = range(first, min(first + CALLS_A_BLOCK, calls))
        yield block(height, tuple(one_transfer(number, holders) for number in numbers))


def one_transfer(number: int, holders: int) -> TokenTransaction:
    giver = number // 2 % holders
    if number % 2 == 0:
        return transfer(number + 1, OWNER, holder(giver), 1_000 + number)
    return transfer(number + 1, holder(giver), holder((giver + 1) % holders), 1)


def block(height: int, transactions: tuple[TokenTransaction, ...]) -> TokenBlock:
    return TokenBlock(height, height.to_bytes(32, "big"), transactions)


@dataclass
class Node:
    """The machine over a state in memory, with undo data of the last blocks."""

    state: TokenCells = field(default_factory=TokenCells)
    done: list[BlockOutcome] = field(default_factory=list)
    hash: bytes = GENESIS_STATE

    def extend(self, block: TokenBlock) -> None:
        outcome = judge_block(block, self.state, bytecode_of, self.hash)
        if any(one.failure or not one.known for one in outcome.outcomes):
            raise RuntimeError(f"a transaction of block {block.height} has no effect")
        self.state.apply(outcome.effects)
        self.done.append(outcome)
        self.hash = outcome.state

    def take_back(self, count: int) -> None:
        for _ in range(count):
            self.state.apply(each.undone for each in reversed(self.done.pop().effects))
        self.hash = self.done[-1].state


def bytecode_of(wanted: bytes) -> Bytecode | None:
    return CODE if wanted == CODE_HASH else None


def replayed(chain: list[TokenBlock]) -> bytes:
    node = Node()
    for each in chain:
        node.extend(each)
    return node.hash


def slowly_replayed(chain: list[TokenBlock]) -> bytes:
    plain = [
        (each.height, each.block_hash, [(one.txid, one.caller.hex(), one.data) for one in each.transactions])
        for each in chain
    ]
    state: bytes = independent.replay(plain, BLOBS)[-1][2]  # type: ignore[no-untyped-call]  # written apart, untyped
    return state


def spent(work: Callable[[list[TokenBlock]], bytes], chain: list[TokenBlock]) -> float:
    began = time.process_time()
    work(chain)
    return time.process_time() - began


def compare(holders: int) -> None:
    chain = list(blocks(COMPARED_CALLS, holders))
    if replayed(chain) != slowly_replayed(chain):
        raise RuntimeError("the machines disagree")
    rounds = [(spent(replayed, chain), spent(slowly_replayed, chain)) for _ in range(ROUNDS)]
    mine, slow = (min(seconds) / COMPARED_CALLS for seconds in zip(*rounds, strict=True))
    print(f"{holders:>10} {1 / mine:14,.0f} {1 / slow:14,.0f} {slow / mine:15.1f}")


def catch_up() -> None:
    chain = list(blocks(CAUGHT_UP, CAUGHT_UP_HOLDERS))
    gc.collect()
    node, resident = Node(), memory_mb(os.getpid())[0]
    began = time.process_time()
    for each in chain:
        node.extend(each)
        # Undo data for the deepest reorganisation, as an indexer would keep it.
        del node.done[: -TAKEN_BACK - 1]
    seconds = time.process_time() - began
    gc.collect()
    grown = memory_mb(os.getpid())[0] - resident
    print(
        f"{CAUGHT_UP:,} calls caught up in {seconds:.1f} processor seconds, "
        f"{CAUGHT_UP / seconds:,.0f} a second"
    )
    print(
        f"{len(node.state.cells):,} cells and the effects of {TAKEN_BACK} blocks: "
        f"{grown:.1f} MB more resident"
    )
    take_back(node, chain)


def take_back(node: Node, chain: list[TokenBlock]) -> None:
    """Rolls blocks back and applies them again, which must give the same state."""
    tip = node.hash
    began = time.process_time()
    node.take_back(TAKEN_BACK)
    back = time.process_time() - began
    began = time.process_time()
    for each in chain[-TAKEN_BACK:]:
        node.extend(each)
    forth = time.process_time() - began
    if node.hash != tip:
        raise RuntimeError("taking blocks back left something behind")
    calls = TAKEN_BACK * CALLS_A_BLOCK
    print(
        f"{TAKEN_BACK} blocks of {calls:,} calls taken back in {back * 1000:.0f} ms, derived again in "
        f"{forth * 1000:.0f} ms: {back / forth:.2f}"
    )


def main() -> None:
    print(
        f"tokens: {COMPARED_CALLS} transfers judged, applied and hashed in memory; "
        "transactions in a processor second (best of five)"
    )
    print(f"{'holders':>10} {'the machine':>14} {'the slow one':>14} {'machine ÷ slow':>15}")
    for holders in HOLDERS:
        compare(holders)
    catch_up()
