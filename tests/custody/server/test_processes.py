"""Several processes over one PostgreSQL and one node, with no sticky state:
whichever answers, whichever works.
"""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select

from custody.server.chain.embedded import EmbeddedChain
from custody.server.store import Store
from custody.server.store.models import AuditEvent, Job, Lease
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
        return list(db.scalars(select(AuditEvent.action).order_by(AuditEvent.chain_id, AuditEvent.position)))


def test_two_that_answer_and_two_that_work_do_the_whole_main_job(either: Cluster) -> None:
    either.start(apis=2, workers=2)
    desk = either.desk()
    fund(either.chain, desk)
    psbt_id = signed_by_both(desk)
    await_status(desk, psbt_id, "BROADCASTING")
    either.chain.mine(1)
    await_status(desk, psbt_id, "CONFIRMED")
    assert paid_to_the_shop(either.chain) == 150_000
    store = either.platform.services.store
    recorded = actions(store)
    for once in ("TRANSACTION_BROADCAST", "PROPOSAL_CONFIRMED", "ORGANISATION_CREATED"):
        assert recorded.count(once) == 1, once
    for process in (*either.apis, *either.workers):
        process.program.send_signal(signal.SIGTERM)
    assert [process.await_end() for process in (*either.apis, *either.workers)] == [0, 0, 0, 0]
    with store.read() as db:
        assert db.scalars(select(Lease)).all() == [], "what was led is given back at once"
        assert db.scalars(select(Job).where(Job.lease_owner.is_not(None))).all() == []


def test_a_worker_that_is_killed_in_the_middle_loses_nothing(cluster: Cluster) -> None:
    """P12, P13: between the node's acceptance test and its answer.
    Another takes over the job, and the chain.
    """
    cluster.start(apis=1, workers=1)
    desk = cluster.desk()
    fund(cluster.chain, desk)
    asked, go_on = threading.Event(), threading.Event()

    def hang() -> None:
        asked.set()
        go_on.wait(PATIENCE)

    cluster.node.faults.before["sendrawtransaction"] = hang
    psbt_id = signed_by_both(desk)
    assert asked.wait(PATIENCE)
    cluster.workers[0].program.kill()
    cluster.workers[0].await_end()
    go_on.set()
    assert desk.proposal(psbt_id)["status"] == "SIGNED"
    cluster.start(workers=1)
    await_status(desk, psbt_id, "BROADCASTING")
    # The watcher may have seen it before the job's turn came.
    store = cluster.platform.services.store
    until(lambda: "TRANSACTION_BROADCAST" in actions(store), "the job was not taken over")
    cluster.chain.mine(1)
    await_status(desk, psbt_id, "CONFIRMED")
    assert paid_to_the_shop(cluster.chain) == 150_000
    assert actions(store).count("TRANSACTION_BROADCAST") == 1


def test_a_second_signal_kills(cluster: Cluster) -> None:
    """The first one waits for what is under way, here for a node that says nothing."""
    cluster.start(workers=1)
    (worker,) = cluster.workers
    asked, go_on = threading.Event(), threading.Event()

    def hang() -> None:
        asked.set()
        go_on.wait(PATIENCE)

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
        go_on.set()


def test_told_to_stop_under_load_it_answers_or_has_done_nothing(cluster: Cluster) -> None:
    cluster.start(apis=2)
    desk = cluster.desk()
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
