"""The token index over a database: catching up and rolling back, compared with the bare writes.

``BENCH_TOKEN_CALLS`` says how many calls. The bare rate inserts the same rows in transactions of the same
size, without reading or judging.
"""

import gc
import os
import time
from itertools import groupby

from sqlalchemy import func, select

from benchmarks.custody.stage import databases, quiet
from benchmarks.idle import memory_mb
from benchmarks.tokens import CALLS_A_BLOCK, CAUGHT_UP_HOLDERS, TAKEN_BACK, blocks, bytecode_of
from custody.server.chain.backend import DataBlock
from custody.server.store import Store
from custody.server.store.models import TokenBlockRow, TokenCellRow, TokenEffectRow, TokenTransactionRow
from custody.server.store.models.base import table_of
from custody.server.tokens.indexer import CALLS_A_BATCH, Indexer
from tests.support.token_chains import Chain, block_of

CALLS = int(os.environ.get("BENCH_TOKEN_CALLS", "100000"))
# In the order in which the rows can be inserted again.
TABLES = tuple(map(table_of, (TokenBlockRow, TokenTransactionRow, TokenEffectRow, TokenCellRow)))


def chain_of(calls: int) -> Chain:
    """As a backend serves it. Blocks beyond the fork have other hashes in `other_end`."""
    found: list[DataBlock] = []
    for block in blocks(calls, CAUGHT_UP_HOLDERS):
        previous = found[-1].ref.hash if found else "00" * 32
        told = [(one.txid, one.caller.hex(), one.data) for one in block.transactions]
        found.append(block_of(block.height, block.block_hash[::-1], previous, told))
    return Chain(found)


def other_end(chain: Chain) -> None:
    """Replaces the last blocks by empty ones, one more in number."""
    del chain.blocks[-TAKEN_BACK:]
    for number in range(TAKEN_BACK + 1):
        last = chain.blocks[-1].ref
        chain.blocks.append(block_of(last.height + 1, (2**200 + number).to_bytes(32, "big"), last.hash, ()))


def bare_seconds(store: Store) -> float:
    """Inserts the index's rows again, in transactions of as many calls."""
    with store.read() as db:
        kept = [[dict(row) for row in db.execute(table.select()).mappings()] for table in TABLES]
    with store.write() as db:
        for table in TABLES:
            db.execute(table.delete())
    span = max(1, CALLS_A_BATCH // CALLS_A_BLOCK)
    parts = [
        {key: list(rows) for key, rows in groupby(each, lambda row: row["height"] // span)}
        for each in kept[:-1]
    ]
    began = time.perf_counter()
    for key in sorted(parts[0]):
        with store.write() as db:
            for table, part in zip(TABLES[:-1], parts, strict=True):
                if part.get(key):
                    db.execute(table.insert(), part[key])
    with store.write() as db:
        db.execute(TABLES[-1].insert(), kept[-1])
    return time.perf_counter() - began


def timed(indexer: Indexer) -> float:
    began = time.perf_counter()
    indexer.look()
    return time.perf_counter() - began


def measure(name: str, url: str) -> None:
    chain, store = chain_of(CALLS), Store.open(url)
    indexer = Indexer(
        "regtest",
        store,
        {"regtest": chain},  # type: ignore[dict-item]  # what an indexer asks of one
        1,
        lambda _db, _chain: bytecode_of,
        lambda _db, _chain, txids: txids,
    )
    gc.collect()
    resident = memory_mb(os.getpid())[0]
    caught_up = timed(indexer)
    grown = memory_mb(os.getpid())[0] - resident
    with store.read() as db:
        failed = db.scalar(
            select(func.count())
            .select_from(TokenTransactionRow)
            .where(TokenTransactionRow.failure.is_not(None))
        )
        cells = db.scalar(select(func.count()).select_from(TokenCellRow))
    if failed:
        raise RuntimeError(f"{failed} calls have no effect")
    bare = bare_seconds(store)
    other_end(chain)
    turned = timed(indexer)
    print(
        f"{name:>10} {CALLS / caught_up:12,.0f} {CALLS / bare:12,.0f} {bare / caught_up:6.2f} "
        f"{caught_up:10.1f} s "
        f"{turned:8.2f} s {grown:8.1f} MB {cells:9,}"
    )
    store.close()


def main() -> None:
    quiet()
    print(f"index of tokens: {CALLS:,} calls in blocks of {CALLS_A_BLOCK}; {TAKEN_BACK} blocks taken back")
    print(
        f"{'':>10} {'calls a s':>12} {'bare a s':>12} {'ratio':>6} {'caught up':>12} "
        f"{'back':>10} {'memory':>11} {'cells':>9}"
    )
    with databases() as urls:
        for name, url in urls.items():
            measure(name, url)
