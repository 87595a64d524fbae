"""A watcher behind a Bitcoin Core node that connects a full block each second, beside the node's own work.

One node makes the blocks, which are submitted to another one that the platform follows. ``BENCH_BLOCKS`` says
how many, ``BENCH_WATCHED`` how many addresses are watched, ``BENCH_OURS`` how many payments of each block pay
them.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from sqlalchemy import func, select

from benchmarks.custody.latency import watch
from benchmarks.custody.stage import databases, quiet
from benchmarks.idle import memory_mb
from custody.server.network.watcher import Watcher
from custody.server.store.models import ChainCoinRow, WatchedScriptRow
from multisig import Sats, Transaction
from multisig.script import p2wsh
from multisig.transaction import OutPoint, TxIn, TxOut
from tests.support.bitcoind import MISSING, NodeRig, RunningNode, find_bitcoind
from tests.support.custody import Desk, desk_of, ok
from tests.support.platform import open_world
from tests.support.regtest import open_output, open_script

BLOCKS = int(os.environ.get("BENCH_BLOCKS", "20"))
WATCHED = int(os.environ.get("BENCH_WATCHED", "100000"))
# As many payments of one input and two outputs as a block holds: nearly 4,000,000 weight units.
PAYMENTS = 6_900
OURS = int(os.environ.get("BENCH_OURS", "100"))
COIN = 20_000
FEE = 1_000
REGTEST = "CUSTODY_CHAIN_REGTEST"
SOURCE, FOREIGN = open_script(1), open_output(2)


@dataclass(frozen=True)
class Made:
    """Blocks in hexadecimal: the setup, and the full ones."""

    before: Sequence[str]
    full: Sequence[str]


@contextmanager
def running(folder: Path, program: Path) -> Iterator[RunningNode]:
    node = RunningNode(program, folder)
    node.start()
    try:
        yield node
    finally:
        node.kill()
        shutil.rmtree(folder, ignore_errors=True)


def made(node: RunningNode, ours: Sequence[bytes]) -> Made:
    rig = NodeRig(node, spare_coins=2)
    fans = []
    for _ in range(BLOCKS):
        money = rig.pay(p2wsh(SOURCE), PAYMENTS * COIN + 500_000)
        rig.mine()
        fans.append(_spend(money, 0, [(p2wsh(SOURCE), COIN)] * PAYMENTS))
        rig.mine_block(fans[-1:])
    first = node.call("getblockcount")
    for number, fan in enumerate(fans):
        to = [ours[(number * OURS + at) % len(ours)] for at in range(OURS)]
        to += [FOREIGN] * (PAYMENTS - OURS)
        half = (COIN - FEE) // 2
        rig.mine_block(
            [_spend(fan.txid, at, [(script, half), (FOREIGN, half)]) for at, script in enumerate(to)]
        )
    rig.close()
    raw = [node.call("getblock", node.call("getblockhash", at), 0) for at in range(1, first + BLOCKS + 1)]
    return Made(raw[:first], raw[first:])


def _spend(txid: str, vout: int, outputs: Sequence[tuple[bytes, int]]) -> Transaction:
    spent = TxIn(OutPoint(txid, vout), 0xFFFFFFFD, b"", (SOURCE,))
    paid = tuple(TxOut(Sats(amount), script) for script, amount in outputs)
    return Transaction(version=2, inputs=(spent,), outputs=paid, locktime=0)


def follow(watcher: Watcher, node: RunningNode, full: Sequence[str]) -> tuple[list[float], ...]:
    """A block is due each second. For each, in seconds: the delay until it is stored, the node's time,
    the watcher's time, and the platform's processor time.
    """
    late, node_took, look_took, own = [], [], [], []
    due = time.perf_counter()
    for block in full:
        time.sleep(max(0.0, due - time.perf_counter()))
        began = time.perf_counter()
        assert node.call("submitblock", block) is None
        node_took.append(time.perf_counter() - began)
        began, spent = time.perf_counter(), time.process_time()
        watcher.look()
        look_took.append(time.perf_counter() - began)
        own.append(time.process_time() - spent)
        late.append(time.perf_counter() - due)
        due += 1.0
    return late, node_took, look_took, own


def measure(name: str, desk: Desk, node: RunningNode, folder: Path) -> None:
    store = desk.world.platform.services.store
    desk.vault = ok(desk.create_vault())
    watch(desk, WATCHED)
    with store.read() as db:
        ours = list(db.scalars(select(WatchedScriptRow.script_pubkey).limit(WATCHED)))
    with running(folder / "maker", node.program) as maker:
        blocks = made(maker, ours)
    for block in blocks.before:
        assert node.call("submitblock", block) is None
    desk.watcher.look()
    before = memory_mb(os.getpid())[0]
    late, node_took, look_took, own = follow(desk.watcher, node, blocks.full)
    grown = memory_mb(os.getpid())[0] - before
    with store.read() as db:
        found = db.scalar(select(func.count()).select_from(ChainCoinRow)) or 0
    assert found >= OURS * BLOCKS, f"{found} coins of {OURS * BLOCKS} were found"
    size = sum(map(len, blocks.full)) / 2e6 / len(blocks.full)
    print(
        f"{name:>10}  {BLOCKS} blocks of {size:.2f} MB, {WATCHED:,} addresses: in the database "
        f"{median(late) * 1000:.0f} ms after it was due, at most {max(late) * 1000:.0f}; of it the node "
        f"{median(node_took) * 1000:.0f} ms, the watcher {median(look_took) * 1000:.0f} ms; "
        f"its processor time {median(own) * 1000:.0f} ms, "
        f"{median(own) / median(node_took):.2f} of the node's time; {grown:.0f} MB more than before"
    )


def part(name: str, url: str, program: Path) -> None:
    no_chain: Any = None
    with tempfile.TemporaryDirectory(prefix="bench") as own, running(Path(own) / "node", program) as node:
        os.environ[REGTEST], os.environ[f"{REGTEST}_COOKIE_FILE"] = f"bitcoind:{node.url}", str(node.cookie)
        with open_world(Path(own) / "state", database_url=url, broadcast_wait_seconds=0) as world:
            world.platform.background.open_chains()
            try:
                measure(name, desk_of(world, no_chain), node, Path(own))
            finally:
                world.platform.background.close_chains()


def main() -> None:
    quiet()
    program = find_bitcoind()
    if program is None:
        print(f"full blocks: left out, {MISSING}")
        return
    with databases() as urls:
        for name, url in urls.items():
            part(name, url, program)
