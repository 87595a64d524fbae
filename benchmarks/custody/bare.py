"""The database doing the same writes by itself: SQLAlchemy's core, rows copied from real ones, one transaction for each.

The statements are put together once, as the platform's are. Of the platform's reads there is one, without which the writes could not be
made: where the audit chain ends. Nothing is chosen, verified or hashed. What the platform does beside this is what the difference is.
"""

import os
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Engine, Table, bindparam, event, insert, select, update

from custody.server.store import Store
from custody.server.store.models import (
    AuditEvent,
    AuditHead,
    Base,
    CoinLock,
    Decision,
    Job,
    Proposal,
    ProposalInput,
    Revision,
    Signature,
    Vault,
    WatchedScript,
    table_of,
)
from custody.server.store.opening import open_database

Row = dict[str, Any]
# Any cycle has begun since.
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)

_VAULTS, _HEADS, _REVISIONS, _PROPOSALS = map(table_of, (Vault, AuditHead, Revision, Proposal))
_PROPOSE, _SPEND, _LOCK = insert(_PROPOSALS), insert(table_of(ProposalInput)), insert(table_of(CoinLock))
_WATCH, _EVENT, _JOB = insert(table_of(WatchedScript)), insert(table_of(AuditEvent)), insert(table_of(Job))
_SIGN, _DECIDE = insert(table_of(Signature)), insert(table_of(Decision))
_INDEX = update(_VAULTS).where(_VAULTS.c.id == bindparam("which")).values(updated_at=bindparam("now"))
_HEAD = select(_HEADS.c.size).where(_HEADS.c.chain_id == bindparam("which"))
_MOVE = (
    update(_HEADS)
    .where(_HEADS.c.chain_id == bindparam("which"))
    .values(size=bindparam("reached"), head_hash=bindparam("hashed"))
)
_RAISE = (
    update(_REVISIONS)
    .where(_REVISIONS.c.workspace_id == bindparam("which"))
    .values(number=_REVISIONS.c.number + 1)
)
_COMBINE = update(_PROPOSALS).where(_PROPOSALS.c.id == bindparam("which")).values(psbt=bindparam("signed"))
_FINISH = (
    update(_PROPOSALS)
    .where(_PROPOSALS.c.id == bindparam("which"))
    .values(status="SIGNED", final_tx=bindparam("final"))
)


def bare_engine(url: str) -> Engine:
    """As the driver does it by itself: on PostgreSQL it prepares what it is asked again and again."""
    engine = open_database(url).writing
    if engine.dialect.name == "postgresql":

        @event.listens_for(engine, "connect")
        def prepare(driver: Any, _record: object) -> None:
            driver.prepare_threshold = 5

    return engine


def copied(store: Store, model: type[Base], which: object = True) -> list[Row]:
    table: Table = model.__table__
    with store.read() as db:
        return [dict(row) for row in db.execute(select(table).where(which)).mappings()]


@dataclass
class Bare:
    """Proposals and approvals like the ones that are stored: at least one, with all its signatures.

    They are dated back to before any cycle: the platform, which is measured beside it, sums up what was proposed in this one.
    """

    store: Store
    engine: Engine
    proposal: Row = field(init=False)
    ids: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        store = self.store
        finished = copied(store, Proposal, Proposal.final_tx.is_not(None))[0]
        self.proposal = finished | {"status": "PENDING", "final_tx": None, "created_at": LONG_AGO}
        self.psbt: bytes = finished["psbt"]
        self.final, own = finished["final_tx"], finished["id"]
        self.inputs = copied(store, ProposalInput, ProposalInput.proposal_id == own)
        self.script = copied(store, WatchedScript)[0]
        self.event = copied(store, AuditEvent, AuditEvent.action == "PROPOSAL_CREATED")[0]
        self.signatures = copied(store, Signature, Signature.proposal_id == own)
        self.decisions = copied(store, Decision, Decision.proposal_id == own)
        self.job = copied(store, Job)[0]
        self.keys = sorted({str(row["key_id"]) for row in self.decisions})

    def propose(self) -> str:
        new = os.urandom(16).hex()
        with self.engine.begin() as connection:
            inputs = [row | {"proposal_id": new, "txid": new * 2} for row in self.inputs]
            locks = [
                {"chain": "regtest", "txid": row["txid"], "vout": row["vout"], "family_id": new}
                for row in inputs
            ]
            row = self.proposal | {"id": new, "family_id": new, "txid_expected": new * 2}
            connection.execute(_PROPOSE, row)
            connection.execute(_SPEND, inputs)
            connection.execute(_LOCK, locks)
            # Beyond what the platform itself has counted to.
            place = {"address_index": 2**32 + time.monotonic_ns(), "script_pubkey": os.urandom(34)}
            connection.execute(_WATCH, self.script | place)
            connection.execute(_INDEX, {"which": row["vault_id"], "now": LONG_AGO})
            self._record(connection)
        self.ids.append(new)
        return new

    def approve(self, proposal_id: str, place: int) -> None:
        """The first or the second of two approvals; the second finishes the proposal."""
        key, which = self.keys[place], {"which": proposal_id}
        own = {"proposal_id": proposal_id}
        with self.engine.begin() as connection:
            connection.execute(_COMBINE, which | {"signed": self.proposal["psbt"]})
            connection.execute(_SIGN, [row | own for row in self.signatures if row["key_id"] == key])
            connection.execute(_DECIDE, [row | own for row in self.decisions if row["key_id"] == key])
            self._record(connection)
            if place:
                connection.execute(_FINISH, which | {"final": self.final})
                job = {name: value for name, value in self.job.items() if name != "id"}
                connection.execute(_JOB, job | {"subject": proposal_id, "done_at": None})
                self._append(connection)

    def _record(self, connection: Connection) -> None:
        self._append(connection)
        connection.execute(_RAISE, {"which": self.proposal["workspace_id"]})

    def _append(self, connection: Connection) -> None:
        chain = {"which": self.event["chain_id"]}
        position = connection.execute(_HEAD, chain).scalar_one() + 1
        event = {"event_uid": os.urandom(16).hex(), "position": position}
        connection.execute(_EVENT, self.event | event)
        connection.execute(_MOVE, chain | {"reached": position, "hashed": os.urandom(32)})
