"""Several processes over one PostgreSQL and one node, without sticky state."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select

from custody.server.chain.embedded import EmbeddedChain
from custody.server.store import Store
from custody.server.store.models import AuditEventRow, JobRow, LeaseRow
from multisig import Network, Sats, encode_address
from tests.support.cluster import PATIENCE, Cluster, open_cluster, until
from tests.support.custody import SHOP, Desk, ok
from tests.support.postgresql import Server
from tests.support.wallets import foreign_script


@pytest.fixture
def cluster(tmp_path: Path, postgresql: Server) -> Iterator[Cluster]:
    with postgresql.database() as url, open_cluster(tmp_path, url) as opened:
        yield opened


@pytest.fixture
def either(tmp_path: Path, database: str) -> Iterator[Cluster]:
    """On SQLite, too: allowed on one machine."""
    with open_cluster(tmp_path, database) as opened:
        yield opened


def fund(chain: EmbeddedChain, desk: Desk) -> None:
    chain.fund(desk.vault["address"], Sats(500_000))
    chain.mine(6)
    until(lambda: desk.wallets()[0]["confirmed_sats"] == 500_000, "no worker saw the deposit")


def signed_by_both(desk: Desk) -> str:
    psbt_id = ok(desk.propose(150_000))["psbt_id"]
    desk.approve("alice", psbt_id)
    desk.approve("bob", psbt_id)
    return psbt_id


def await_status(desk: Desk, psbt_id: str, status: str) -> None:
    until(lambda: desk.proposal(psbt_id)["status"] == status, f"it never was {status}")


def paid_to_the_shop(chain: EmbeddedChain) -> int:
    found = chain.outputs_to([foreign_script("shop")])
    assert encode_address(foreign_script("shop"), Network.REGTEST) == SHOP
    return sum(each.amount for each in found)


def actions(store: Store) -> list[str]:
    with store.read() as db:
        return list(
            db.scalars(select(AuditEventRow.action).order_by(AuditEventRow.chain_id, AuditEventRow.position))
        )


@pytest.mark.slow("five processes of the server for half a minute")
def test_the_main_job_where_one_is_killed_and_one_is_told_to_stop(either: Cluster) -> None:
    """P12, P13: a worker dies between the node's acceptance test and its answer, two take over the job and
    the chain; whichever process answers, nothing is done twice, and what is told to stop gives back what it
    led.
    """
    either.start(apis=2, workers=1)
    desk = either.desk()
    fund(either.chain, desk)
    asked, then_step = threading.Event(), threading.Event()

    def hang() -> None:
        asked.set()
        then_step.wait(PATIENCE)

    either.node.faults.before["sendrawtransaction"] = hang
    psbt_id = signed_by_both(desk)
    assert asked.wait(PATIENCE)
    killed = either.workers.pop()
    killed.program.kill()
    killed.await_end()
    then_step.set()
    assert desk.proposal(psbt_id)["status"] == "SIGNED"
    either.start(workers=2)
    await_status(desk, psbt_id, "BROADCASTING")
    # The watcher may have seen it before the job's turn came.
    store = either.platform.services.store
    until(lambda: "TRANSACTION_BROADCAST" in actions(store), "the job was not taken over")
    either.chain.mine(1)
    await_status(desk, psbt_id, "CONFIRMED")
    assert paid_to_the_shop(either.chain) == 150_000
    recorded = actions(store)
    for once in ("TRANSACTION_BROADCAST", "PROPOSAL_CONFIRMED", "ORGANISATION_CREATED"):
        assert recorded.count(once) == 1, once

    stop_under_load(either, desk)
    others = (either.apis[0], *either.workers)
    for process in others:
        process.program.send_signal(signal.SIGTERM)
    assert [process.await_end() for process in others] == [0, 0, 0]
    with store.read() as db:
        assert db.scalars(select(LeaseRow)).all() == [], "what was led is given back at once"
        assert db.scalars(select(JobRow).where(JobRow.lease_owner.is_not(None))).all() == []


def stop_under_load(cluster: Cluster, desk: Desk) -> None:
    """A process that is told to stop answers, or has done nothing."""
    told, failed = [], []
    enough, stopped = threading.Semaphore(0), threading.Event()

    def write(writer: int) -> None:
        with httpx.Client(base_url=cluster.apis[1].url, timeout=PATIENCE) as http:
            for number in range(10_000):
                name = f"{writer}-{number}"
                body = {"workspace_id": desk.workspace_id, "name": name}
                body["address"] = encode_address(foreign_script(name), Network.REGTEST)
                try:
                    answer = http.post("/api/v1/add-whitelist-address", json=body, headers=desk.admin.headers)
                except httpx.TransportError:
                    failed.append(name)
                    if stopped.is_set():
                        return
                    continue
                assert answer.status_code == 200, answer.text
                told.append(name)
                enough.release()

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    for _ in range(20):
        assert enough.acquire(timeout=PATIENCE)
    cluster.apis[1].program.send_signal(signal.SIGTERM)
    assert cluster.apis[1].await_end() == 0
    stopped.set()
    for writer in writers:
        writer.join(PATIENCE)
    kept = {
        entry["name"]
        for entry in ok(desk.admin.get("/api/v1/get-whitelist-addresses", workspace_id=desk.workspace_id))
    }
    assert kept == set(told)
    assert not kept & set(failed)


def test_a_second_signal_kills(cluster: Cluster) -> None:
    """The first one waits for what is under way, here for a node that says nothing."""
    cluster.start(workers=1)
    (worker,) = cluster.workers
    asked, then_step = threading.Event(), threading.Event()

    def hang() -> None:
        asked.set()
        then_step.wait(PATIENCE)

    def is_out_of_sight() -> bool:
        try:
            httpx.get(f"{worker.url}/health")
        except httpx.TransportError:
            return True
        return False

    cluster.node.faults.before["getblockchaininfo"] = hang
    try:
        assert asked.wait(PATIENCE)
        worker.program.send_signal(signal.SIGTERM)
        until(is_out_of_sight, "the first signal was not heard")
        worker.program.send_signal(signal.SIGTERM)
        assert worker.await_end() == -signal.SIGTERM
    finally:
        then_step.set()
