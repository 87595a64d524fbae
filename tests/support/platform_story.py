"""The stories of the platform's crash harness, from the last signature to the confirmation and beyond.

Each turn is one process. After a kill another process plays it again, as a signer's program resends its
signature and a service manager restarts a worker; what is already done is left as it is.
"""

import secrets
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import func, select

from custody.server.chain.backend import ChainBackend
from custody.server.chain.embedded import EmbeddedChain
from custody.server.service.audit.log import verify
from custody.server.service.jobs.leases import Lead
from custody.server.store import Store
from custody.server.store.models import (
    AuditEventRow,
    ChainCoinRow,
    CoinLockRow,
    JobRow,
    ProposalInputRow,
    ProposalRow,
)
from multisig import Transaction
from tests.support.custody import SHOP, SIGNERS, Desk, ok, open_desk
from tests.support.platform import As, World, open_world, seed

AMOUNT = 30_000_000
# A process starts after the leases of a killed one have lapsed.
MINUTES_BETWEEN_TURNS = 10
# Rounds of a worker, at most, until nothing is left to do.
MOST_ROUNDS = 20


class Counting(Protocol):
    """Counts the steps between ``arm`` and ``disarm``."""

    def arm(self) -> None: ...
    def disarm(self) -> None: ...


Wrap = Callable[[EmbeddedChain], Any]
Act = Callable[[World, Desk, "Stepping"], None]


@dataclass(frozen=True)
class Stepping:
    """A process's chain with counted steps; None in a process without workers."""

    steps: Counting
    chain: EmbeddedChain | None


@dataclass(frozen=True)
class Turn:
    """One process: an API process answers a request, a worker works until there is nothing to do."""

    name: str
    act: Act
    has_chain: bool = False

    def play(self, state: Path, url: str | None, number: int, steps: Counting, wrap: Wrap) -> None:
        with ExitStack() as stack:
            world = stack.enter_context(open_world(state, database_url=url, broadcast_wait_seconds=0))
            world.clock.advance(minutes=MINUTES_BETWEEN_TURNS * (number + 1))
            chain = None
            if self.has_chain:
                chain = stack.enter_context(closing(world.platform.background.open_chain()))
                backends: dict[str, ChainBackend] = world.platform.background.backends
                backends[chain.network.value] = wrap(chain)
            self.act(world, reopen(world, chain), Stepping(steps, chain))
            steps.disarm()


@dataclass(frozen=True)
class Story:
    """``begin`` makes the initial state; ``look_back`` returns what is wrong at the end."""

    name: str
    turns: tuple[Turn, ...]
    begin: Callable[[Path, str | None], None]
    look_back: Callable[[Path, str | None], list[str]]


def begin(state: Path, url: str | None) -> None:
    """A funded 2-of-3 vault, and a proposal that one of its signers has approved."""
    with open_desk(state, database_url=url) as desk:
        desk.deposit(50_000_000)
        psbt_id = ok(desk.propose(AMOUNT, recipients=[SHOP]))["psbt_id"]
        desk.approve("alice", psbt_id)


class _SignedIn(dict[str, As]):
    """Signers by name, each signed in on first use: most turns need one or none."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def __missing__(self, name: str) -> As:
        return self.setdefault(name, self._world.as_user(f"{name}@example.org"))


def reopen(world: World, chain: EmbeddedChain | None) -> Desk:
    users = _SignedIn(world)
    devices = {name: seed(number) for number, name in enumerate(SIGNERS, start=1)}
    desk = Desk(world, chain, 1, world.as_user("admin@example.org"), users, {}, devices)  # type: ignore[arg-type]
    # The oldest: another may have replaced it.
    desk.vault = desk.wallets()[0]
    return desk


def _sign_last(_world: World, desk: Desk, stepping: Stepping) -> None:
    (record,) = proposals(desk)
    signed = desk.signed("bob", record["psbt_id"])
    stepping.steps.arm()
    ok(desk.submit("bob", record["psbt_id"], signed))


def _broadcast(_world: World, desk: Desk, stepping: Stepping) -> None:
    _work(desk, stepping, until="BROADCASTING")


def _confirm(_world: World, desk: Desk, stepping: Stepping) -> None:
    """The network mines it, if it is not mined yet."""
    assert stepping.chain is not None
    (record,) = proposals(desk)
    if stepping.chain.transaction(record["txid_expected"]).height is None:
        stepping.chain.mine(1)
    _work(desk, stepping, until="CONFIRMED")


def _reorganise(_world: World, desk: Desk, stepping: Stepping) -> None:
    """The network replaces the block with the payment by two without it."""
    assert stepping.chain is not None
    (record,) = proposals(desk)
    if record["status"] == "CONFIRMED" and stepping.chain.tip().height == record["block_height"]:
        stepping.chain.reorganise(1, 2)
    _work(desk, stepping, until="BROADCASTING")


def _work(desk: Desk, stepping: Stepping, until: str) -> None:
    drain(desk, stepping)
    (record,) = proposals(desk)
    assert record["status"] == until, record["status"]


def drain(desk: Desk, stepping: Stepping) -> None:
    """Runs a worker's rounds until nothing changes any more."""
    background = desk.world.platform.background
    lead = Lead(background.store, background.clock, secrets.token_bytes, f"watcher of {desk.watcher.chain}")

    def look() -> bool:
        """The lease for following the chain is taken, renewed and released step by step."""
        with lead.work() as held:
            assert held is not None, "the killed one's lease has lapsed"
            lead.renew()
            return desk.watcher.look(held)

    stepping.steps.arm()
    for _ in range(MOST_ROUNDS):
        if not (desk.outbox.run_due() | look()):
            break
    lead.release()
    stepping.steps.disarm()


def proposals(desk: Desk) -> list[dict]:
    return ok(desk.admin.get("/api/v1/psbt", workspace_id=desk.workspace_id))


# Each is recorded once for a proposal, even if processes were killed.
ONCE = ("PROPOSAL_CREATED", "PROPOSAL_FINALISED", "TRANSACTION_BROADCAST")


def look_back(state: Path, url: str | None) -> list[str]:
    """What is wrong at the end."""
    with (
        open_world(state, database_url=url, broadcast_wait_seconds=0) as world,
        closing(world.platform.background.open_chain()) as chain,
    ):
        desk = reopen(world, chain)
        (record,) = proposals(desk)
        store = world.platform.services.store
        wrong = [f"audit: {fault}" for fault in verify(store)]
        wrong += _wrong_end(record, chain)
        wrong += _wrong_limits(desk, record)
        wrong += _wrong_store(store)
    return wrong


def _wrong_end(record: dict, chain: EmbeddedChain) -> list[str]:
    known = chain.transaction(record["txid_expected"])
    found = {
        "status": record["status"] == "CONFIRMED",
        "txid": record["txid"] == record["txid_expected"],
        "on chain": known is not None and known.height == record["block_height"],
        "block": known is not None and known.block_hash == record["block_hash"],
        "signatures": record["collected_signatures"] == record["required_signatures"],
    }
    return [f"the proposal's {what}: {record}" for what, right in found.items() if not right]


def _wrong_limits(desk: Desk, record: dict) -> list[str]:
    moved = AMOUNT + record["fee_sats"]
    limits = ok(desk.admin.get("/api/v1/get-my-limits", workspace_id=1))
    vault = ok(desk.admin.get("/api/v1/get-vault-limits", workspace_id=1, vault_id=desk.vault["id"]))
    used = {"role": limits["Used"], "vault": vault["Used"]}
    return [
        f"the {whose}'s limit says {amount}, and {moved} sat were moved"
        for whose, amount in used.items()
        if round(float(amount) * 100_000_000) != moved
    ]


def _wrong_store(store: Store) -> list[str]:
    with store.read() as db:
        jobs = list(db.scalars(select(JobRow).where(JobRow.kind == "broadcast", JobRow.done_at.is_(None))))
        proposal = db.scalars(select(ProposalRow)).one()
        inputs = {(place.txid, place.vout) for place in db.scalars(select(ProposalInputRow))}
        locks = {(lock.txid, lock.vout) for lock in db.scalars(select(CoinLockRow))}
        coins = {(coin.txid, coin.vout): coin for coin in db.scalars(select(ChainCoinRow))}
        rows = db.execute(select(AuditEventRow.action, func.count()).group_by(AuditEventRow.action)).all()
        counts = dict(tuple(row) for row in rows)
        final = Transaction.parse(proposal.final_tx or b"")
    wrong = [f"job {job.id} is still open: {job.last_error}" for job in jobs]
    wrong += [
        f"{action} is recorded {counts.get(action, 0)} times" for action in ONCE if counts.get(action) != 1
    ]
    if counts.get("SIGNATURE_SUBMITTED") != 2:
        wrong.append(f"{counts.get('SIGNATURE_SUBMITTED')} signatures are recorded")
    if locks != inputs:
        wrong.append(f"the coins {locks} are locked, and {inputs} are spent")
    unspent = {outpoint for outpoint, coin in coins.items() if coin.spent_by is None}
    change = {(final.txid, vout) for _, vout in coins if (final.txid, vout) in coins}
    if unspent != change:
        wrong.append(f"the coins {unspent} are unspent, and the change is {change}")
    return wrong


def begin_frozen(state: Path, url: str | None) -> None:
    """A payment that met its threshold in a vault that was frozen before a worker broadcast it."""
    begin(state, url)
    with open_world(state, database_url=url, broadcast_wait_seconds=0) as world:
        desk = reopen(world, None)
        (record,) = proposals(desk)
        desk.approve("bob", record["psbt_id"])
        ok(_of_vault(desk, "alice", "freeze-vault"))


def _unfreeze(name: str) -> Act:
    def act(_world: World, desk: Desk, stepping: Stepping) -> None:
        stepping.steps.arm()
        if desk.wallets()[0]["is_frozen"]:
            ok(_of_vault(desk, name, "unfreeze-vault"))

    return act


def _of_vault(desk: Desk, name: str, path: str) -> Any:
    body = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    return desk.signers[name].post(f"/api/v1/{path}", body)


def look_back_thawed(state: Path, url: str | None) -> list[str]:
    """Two people unfroze it once, and the worker broadcasts the waiting payment."""
    with (
        open_world(state, database_url=url, broadcast_wait_seconds=0) as world,
        closing(world.platform.background.open_chain()) as chain,
    ):
        desk = reopen(world, chain)
        desk.settle()
        desk.mine()
    wrong = look_back(state, url)
    with open_world(state, database_url=url, broadcast_wait_seconds=0) as world:
        said = world.audit_actions("workspace:1")
    words = ("VAULT_FROZEN", "VAULT_UNFREEZE_ASKED", "VAULT_UNFROZEN")
    return wrong + [f"{word} is recorded {said.count(word)} times" for word in words if said.count(word) != 1]


# --- an address that two people enter in the book ----------------------------------------------------------

ENTERED = {"workspace_id": 1, "name": "Shop", "address": SHOP}


def begin_ruled(state: Path, url: str | None) -> None:
    """Two administrators, and the rule that one of them confirms what the other asks for."""
    with open_desk(state, database_url=url) as desk:
        desk.world.member(1, "dora@example.org", "Administrator")
        rule = {"workspace_id": 1, "is_on": True, "confirming_role_id": 1}
        ok(desk.admin.post("/api/v1/update-second-person-rule", rule))


def _ask(_world: World, desk: Desk, stepping: Stepping) -> None:
    """Its client repeats it: the same request is the same change."""
    stepping.steps.arm()
    asked = {"workspace_id": 1, "path": "/api/v1/add-whitelist-address", "body": ENTERED}
    ok(desk.admin.post("/api/v1/request-change", asked))


def _confirm_change(world: World, desk: Desk, stepping: Stepping) -> None:
    dora = world.as_user("dora@example.org")
    (change,) = ok(desk.admin.get("/api/v1/changes", workspace_id=1))
    stepping.steps.arm()
    if change["status"] == "PENDING":
        ok(dora.post("/api/v1/confirm-change", {"workspace_id": 1, "change_id": change["change_id"]}))


def look_back_changed(state: Path, url: str | None) -> list[str]:
    with open_world(state, database_url=url) as world:
        admin = world.as_user("admin@example.org")
        changes = ok(admin.get("/api/v1/changes", workspace_id=1))
        book = [one["address"] for one in ok(admin.get("/api/v1/get-whitelist-addresses", workspace_id=1))]
        said = world.audit_actions("workspace:1")
        wrong = [f"audit: {fault}" for fault in verify(world.platform.services.store)]
    words = ("CHANGE_ASKED", "ADDRESS_ADDED", "CHANGE_CONFIRMED")
    wrong += [f"{word} is recorded {said.count(word)} times" for word in words if said.count(word) != 1]
    if ([change["status"] for change in changes], book) != (["APPLIED"], [SHOP]):
        wrong.append(f"the changes are {changes}, and the book {book}")
    return wrong


CHANGE = Story(
    "change",
    (Turn("the request", _ask), Turn("the confirmation", _confirm_change)),
    begin_ruled,
    look_back_changed,
)
UNFREEZE = Story(
    "unfreeze",
    (
        Turn("the first word", _unfreeze("bob")),
        Turn("the second word", _unfreeze("carol")),
    ),
    begin_frozen,
    look_back_thawed,
)
PAYMENT = Story(
    "payment",
    (
        Turn("last signature", _sign_last),
        Turn("broadcast", _broadcast, has_chain=True),
        Turn("confirmation", _confirm, has_chain=True),
        Turn("reorganisation", _reorganise, has_chain=True),
        Turn("second confirmation", _confirm, has_chain=True),
    ),
    begin,
    look_back,
)
