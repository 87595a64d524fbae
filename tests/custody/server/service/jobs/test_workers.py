"""A server's own threads: they do the work without being told, and an operator's commands reach them."""

import pytest

from custody.server.domain.errors import ChainUnavailable, Invalid
from multisig import Network, Sats, decode_address
from tests.support.backends import Unreliable
from tests.support.custody import SHOP, ok, open_desk

# Nothing here takes a second; a machine under load may take some.
PATIENCE = 90.0


@pytest.fixture
def running(desk):
    """The desk with its workers at work."""
    background = desk.world.platform.background
    workers = background.workers()
    workers.start()
    yield desk
    workers.stop()


def until(desk, condition):
    """Waits for commits until the condition holds."""
    changes = desk.world.platform.background.changes
    for _ in range(int(PATIENCE / 0.1)):
        seen = changes.version
        if condition():
            return
        changes.wait(seen, 0.1)
    raise AssertionError("it did not happen in time")


def seen_by_workers(desk, *amounts):
    """A deposit that they find by themselves: the watcher is theirs alone while they run."""
    for amount in amounts:
        desk.chain.fund(desk.vault["address"], Sats(amount))
    desk.chain.mine(6)
    until(desk, lambda: desk.wallets()[0]["confirmed_sats"] == sum(amounts))


def test_the_whole_way_without_a_helping_hand(running):
    operator = running.world.platform.operator
    txid = operator.fund(running.vault["address"], "0.005")["txid"]
    assert operator.mine(6)["height"] == running.chain.tip().height
    until(running, lambda: running.wallets()[0]["confirmed_sats"] == 500_000)
    assert running.chain.transaction(txid).height is not None
    psbt_id = ok(running.propose(150_000))["psbt_id"]
    running.approve("alice", psbt_id)
    running.approve("bob", psbt_id)
    until(running, lambda: running.proposal(psbt_id)["status"] == "BROADCASTING")
    operator.mine(1)
    until(running, lambda: running.proposal(psbt_id)["status"] == "CONFIRMED")
    (paid,) = running.chain.outputs_to([decode_address(SHOP, Network.REGTEST)])
    assert paid.amount == 150_000


def test_the_last_approval_waits_for_its_broadcast(tmp_path, database):
    with open_desk(tmp_path / "state", database_url=database, broadcast_wait_seconds=PATIENCE) as desk:
        background = desk.world.platform.background
        desk.deposit(500_000)
        psbt_id = ok(desk.propose(150_000))["psbt_id"]
        workers = background.workers()
        workers.start()
        try:
            desk.approve("alice", psbt_id)
            answer = desk.approve("bob", psbt_id)
        finally:
            workers.stop()
        assert answer["status"] == "BROADCASTING"
        assert answer["txid"] == desk.proposal(psbt_id)["txid_expected"]


def test_workers_survive_a_node_that_is_away(running):
    backends = running.world.platform.background.backends
    node = backends["regtest"] = Unreliable(running.chain)
    seen_by_workers(running, 500_000)
    psbt_id = ok(running.propose(150_000))["psbt_id"]
    node.down = True
    running.approve("alice", psbt_id)
    running.approve("bob", psbt_id)
    until(running, lambda: running.proposal(psbt_id)["status"] == "STALLED")
    node.down = False
    running.world.clock.advance(seconds=61)
    until(running, lambda: running.proposal(psbt_id)["status"] == "BROADCASTING")


def test_workers_survive_a_fault_of_ours(running, monkeypatch):
    """One bad row must not stop all work: it is logged and the next is tried."""
    faults = []

    def fail(self, task):
        faults.append(task.subject)
        raise RuntimeError("unexpected")

    psbt_ids = []
    seen_by_workers(running, 200_000, 200_000)
    with monkeypatch.context() as patched:
        patched.setattr("custody.server.service.network.broadcast.Broadcaster.__call__", fail)
        psbt_ids.append(ok(running.propose(100_000))["psbt_id"])
        for name in ("alice", "bob"):
            running.approve(name, psbt_ids[0])
        until(running, lambda: faults == psbt_ids)
    psbt_ids.append(ok(running.propose(100_000))["psbt_id"])
    for name in ("alice", "bob"):
        running.approve(name, psbt_ids[1])
    until(running, lambda: running.proposal(psbt_ids[1])["status"] == "BROADCASTING")
    running.world.clock.advance(seconds=61)
    until(running, lambda: running.proposal(psbt_ids[0])["status"] == "BROADCASTING")


def test_an_operators_mistake_is_told_and_done_once(running):
    operator = running.world.platform.operator
    height = running.chain.tip().height
    with pytest.raises(Invalid, match="between 1 and 1000"):
        operator.mine(5_000)
    with pytest.raises(Invalid, match="another network"):
        operator.fund("tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx", "1")
    with pytest.raises(Invalid, match="decimal"):
        operator.fund(running.vault["address"], "1e3")
    assert running.chain.tip().height == height


def test_without_a_server_a_command_gives_up_and_leaves_nothing_to_be_done_later(desk):
    with pytest.raises(ChainUnavailable, match="No server"):
        desk.world.platform.operator.mine(1, timeout=0.1)
    assert desk.outbox.run_due() == 0
    assert desk.chain.tip().height == 0
