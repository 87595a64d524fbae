"""A story of the platform's crash harness: a broadcast payment is replaced at a higher fee, and the
original is mined in the end.

The bump has an ``Idempotency-Key``, so that a program without an answer can repeat it.
"""

from contextlib import closing
from pathlib import Path

from sqlalchemy import func, select

from custody.server.service.audit.log import verify
from custody.server.store import Store
from custody.server.store.models import AuditEventRow, CoinLockRow, JobRow, ProposalInputRow, ProposalRow
from multisig import Transaction
from tests.support.custody import SHOP, Desk, ok, open_desk
from tests.support.platform import World, open_world
from tests.support.platform_story import AMOUNT, Stepping, Story, Turn, drain, proposals, reopen

RATE, HIGHER_RATE = "2", "20"
ONCE_EACH = ("PROPOSAL_CREATED", "PROPOSAL_FINALISED", "TRANSACTION_BROADCAST", "PROPOSAL_CONFIRMED")


def _begin(state: Path, url: str | None) -> None:
    """A payment that waits in the mempool."""
    with open_desk(state, database_url=url) as desk:
        desk.deposit(50_000_000)
        psbt_id = ok(desk.propose(AMOUNT, recipients=[SHOP], fee_rate=RATE))["psbt_id"]
        desk.approve("alice", psbt_id)
        desk.approve("bob", psbt_id)
        desk.settle()


def _bump(_world: World, desk: Desk, stepping: Stepping) -> None:
    first = proposals(desk)[0]
    body = {
        "wallet_id": desk.vault["id"],
        "workspace_id": desk.workspace_id,
        "tx_type": "send",
        "replaces_psbt_id": first["psbt_id"],
        "fee_rate": HIGHER_RATE,
    }
    stepping.steps.arm()
    ok(desk.admin.post("/api/v1/create-psbt", body, **{"Idempotency-Key": "the-bump"}))


def _sign(_world: World, desk: Desk, stepping: Stepping) -> None:
    """A signer without an answer resends the signature."""
    _, second = proposals(desk)
    signed = {name: desk.signed(name, second["psbt_id"]) for name in ("alice", "bob")}
    stepping.steps.arm()
    for name, psbt in signed.items():
        ok(desk.submit(name, second["psbt_id"], psbt))


def _replace(_world: World, desk: Desk, stepping: Stepping) -> None:
    _work(desk, stepping, ["REPLACED", "BROADCASTING"])


def _confirm(_world: World, desk: Desk, stepping: Stepping) -> None:
    assert stepping.chain is not None
    _, second = proposals(desk)
    if stepping.chain.transaction(second["txid_expected"]).height is None:
        stepping.chain.mine(1)
    _work(desk, stepping, ["INVALIDATED", "CONFIRMED"])


def _swap(world: World, desk: Desk, stepping: Stepping) -> None:
    """A longer branch has the first version instead of the second."""
    assert stepping.chain is not None
    first, second = proposals(desk)
    seen = stepping.chain.transaction(second["txid_expected"])
    if seen is not None and seen.height is not None:
        with world.platform.services.store.read() as db:
            final = Transaction.parse(db.get_one(ProposalRow, first["psbt_id"]).final_tx or b"")
        stepping.chain.reorganise(1, 2, [final])
    _work(desk, stepping, ["CONFIRMED", "INVALIDATED"])


def _work(desk: Desk, stepping: Stepping, until: list[str]) -> None:
    drain(desk, stepping)
    found = [record["status"] for record in proposals(desk)]
    assert found == until, found


def _look_back(state: Path, url: str | None) -> list[str]:
    with (
        open_world(state, database_url=url, broadcast_wait_seconds=0) as world,
        closing(world.platform.background.open_chain()) as chain,
    ):
        desk = reopen(world, chain)
        records, store = proposals(desk), world.platform.services.store
        wrong = [f"audit: {fault}" for fault in verify(store)]
        statuses = [record["status"] for record in records]
        if statuses != ["CONFIRMED", "INVALIDATED"]:
            wrong.append(f"the statuses are {statuses}")
        limits = ok(desk.admin.get("/api/v1/get-my-limits", workspace_id=1))
        moved = AMOUNT + records[0]["fee_sats"]
        if round(float(limits["Used"]) * 100_000_000) != moved:
            wrong.append(f"the limit says {limits['Used']}, and {moved} sat were moved")
        return wrong + _wrong_store(store, records[0]["psbt_id"])


def _wrong_store(store: Store, mined: str) -> list[str]:
    with store.read() as db:
        jobs = list(db.scalars(select(JobRow).where(JobRow.kind == "broadcast", JobRow.done_at.is_(None))))
        spent = select(ProposalInputRow).where(ProposalInputRow.proposal_id == mined)
        inputs = {(place.txid, place.vout) for place in db.scalars(spent)}
        locks = {(lock.txid, lock.vout) for lock in db.scalars(select(CoinLockRow))}
        rows = db.execute(select(AuditEventRow.action, func.count()).group_by(AuditEventRow.action)).all()
    counts = dict(tuple(row) for row in rows)
    wrong = [f"job {job.id} is still open: {job.last_error}" for job in jobs]
    wrong += [
        f"{action} is recorded {counts.get(action, 0)} times"
        for action in ONCE_EACH
        if counts.get(action) != 2
    ]
    if counts.get("SIGNATURE_SUBMITTED") != 4:
        wrong.append(f"{counts.get('SIGNATURE_SUBMITTED')} signatures are recorded")
    if locks != inputs:
        wrong.append(f"the coins {locks} are locked, and {inputs} are spent")
    return wrong


BUMP = Story(
    "bump",
    (
        Turn("bump", _bump, has_chain=True),
        Turn("last signatures", _sign),
        Turn("replacement", _replace, has_chain=True),
        Turn("confirmation", _confirm, has_chain=True),
        Turn("the other version", _swap, has_chain=True),
    ),
    _begin,
    _look_back,
)
