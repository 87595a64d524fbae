"""Latency of a send from many coins, a list among many proposals, a broadcast, and reading a block."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from statistics import median, quantiles

from sqlalchemy import insert

from benchmarks.custody.stage import analyse, databases, fill, multiply, staged
from custody.server.store.models import VaultRow, WatchedScriptRow
from custody.server.store.store import Store
from tests.support.custody import Desk, ok
from tests.support.flood import flood
from tests.support.platform import As

COINS = (10, 3_000, 70_000)
LISTS = (1_000, 100_000)
WATCHED = 10_000
ROUNDS = 15
THRESHOLDS = 60


def times_ms(work: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    spent = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        spent.append((time.perf_counter() - began) * 1_000)
    return spent


@contextmanager
def turns(store: Store) -> Iterator[list[float]]:
    """How long each writer held the writers' lock, in milliseconds."""
    held: list[float] = []
    write = store.write

    @contextmanager
    def timed() -> Iterator[object]:
        with write() as db:
            began = time.perf_counter()
            yield db
        held.append((time.perf_counter() - began) * 1_000)

    store.write = timed  # type: ignore[method-assign,assignment]
    try:
        yield held
    finally:
        del store.write


def sends(name: str, url: str, coins: int) -> None:
    with staged(url) as desk:
        fill(desk, 40, amount=1_000_000)
        with desk.world.platform.services.store.write() as db:
            flood(db, db.get_one(VaultRow, desk.vault["id"]), [5_000] * max(0, coins - 40), salt="dust")
        analyse(desk)
        store = desk.world.platform.services.store
        ok(desk.propose(1_000, fee_rate="1"))
        with turns(store) as held:
            whole = times_ms(lambda: ok(desk.propose(100_000, fee_rate="1")))
        short = times_ms(lambda: desk.propose(2_000_000_000, fee_rate="1"), 5)
    print(
        f"{name:>10}  create-psbt, {coins:>6} coins: {median(whole):6.1f} ms, "
        f"of which the lock {median(held):5.1f} ms; "
        f"INSUFFICIENT_FUNDS {median(short):6.1f} ms, without the lock"
    )


def _listed(person: As, query: Mapping[str, object]) -> None:
    ok(person.get("/api/v1/psbt", **query))


def lists(name: str, url: str) -> None:
    with staged(url) as desk:
        fill(desk, 3)
        ok(desk.propose(10_000, fee_rate="1"))
        before, found = 1, {}
        for count in LISTS:
            multiply(desk, count - before)
            before = count
            query = {"workspace_id": desk.workspace_id, "limit": 50}
            for what, more in (("pending", {"status": "PENDING"}), ("awaiting me", {"awaiting": "me"})):
                asked = query | more
                found[what, count] = median(times_ms(partial(_listed, desk.signers["alice"], asked)))
    for what in ("pending", "awaiting me"):
        few, many = (found[what, count] for count in LISTS)
        print(
            f"{name:>10}  50 of {LISTS[0]} {what}: {few:.1f} ms; "
            f"of {LISTS[1]}: {many:.1f} ms; ÷ {many / few:.2f}"
        )


def thresholds(name: str, url: str) -> None:
    """From the last approval to its answer, which waits for the broadcast; the server's workers run."""
    with staged(url) as desk:
        desk.world.platform.services.__dict__["broadcast_wait_seconds"] = 10.0
        one = desk.deposit(*[100_000] * 3 * THRESHOLDS)
        assert one
        ids = [ok(desk.propose(10_000, fee_rate="1"))["psbt_id"] for _ in range(THRESHOLDS)]
        signed = {each: desk.signed("bob", each) for each in ids}
        for each in ids:
            desk.approve("alice", each)
        workers = desk.world.platform.background.workers()
        workers.start()
        try:
            turn = iter(ids)

            def finish() -> None:
                each = next(turn)
                assert ok(desk.submit("bob", each, signed[each]))["status"] == "BROADCASTING"

            spent = times_ms(finish, THRESHOLDS)
        finally:
            workers.stop()
    print(
        f"{name:>10}  last approval to mempool: p50 {median(spent):.1f} ms, "
        f"p99 {quantiles(spent, n=100)[98]:.1f} ms"
    )


def blocks(name: str, url: str) -> None:
    """The platform's share of a block's time: the chain is in memory."""
    with staged(url) as desk:
        desk.deposit(*[100_000] * 3)
        ok(desk.propose(10_000, fee_rate="1"))
        found = {}
        for scripts, past in ((0, 0), (WATCHED, 0), (WATCHED, 20_000)):
            if scripts and not past:
                watch(desk, scripts)
            if past:
                multiply(desk, past, status="EXPIRED")
            desk.watcher.look()
            found[scripts, past] = median(block_ms(desk) for _ in range(7))
    for (scripts, past), spent in found.items():
        print(f"{name:>10}  a block, {scripts} scripts more watched, {past} proposals ended: {spent:.1f} ms")


def block_ms(desk: Desk) -> float:
    desk.chain.mine(1)
    began = time.perf_counter()
    desk.watcher.look()
    return (time.perf_counter() - began) * 1_000


def watch(desk: Desk, count: int) -> None:
    rows = [
        {
            "chain": "regtest",
            "script_pubkey": b"\x00\x20" + os.urandom(32),
            "vault_id": desk.vault["id"],
            "branch": 0,
            "address_index": 1_000 + number,
        }
        for number in range(count)
    ]
    with desk.world.platform.services.store.write() as db:
        db.execute(insert(WatchedScriptRow), rows)
    analyse(desk)


def main() -> None:
    for part in (thresholds, lists, blocks):
        with databases() as urls:
            for name, url in urls.items():
                part(name, url)
    for coins in COINS:
        with databases() as urls:
            for name, url in urls.items():
                sends(name, url, coins)
