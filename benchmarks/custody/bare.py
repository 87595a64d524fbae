"""The database doing the same writes by itself: SQLAlchemy's core, rows copied from real ones, one transaction for each.

Nothing is read, chosen, verified or hashed. What the platform does beside this is what the difference is.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from sqlalchemy import Connection, Engine, Table, insert, select, update

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
)

Row = dict[str, object]
# Far beyond what the platform itself has counted to meanwhile.
FIRST = 1_000_000


def copied(store: Store, model: type[Base], which: object = True) -> list[Row]:
    table: Table = model.__table__
    with store.read() as db:
        return [dict(row) for row in db.execute(select(table).where(which)).mappings()]


@dataclass
class Bare:
    """Proposals and approvals like the ones that are stored: at least one, with all its signatures."""

    store: Store
    engine: Engine
    proposal: Row = field(init=False)
    ids: list[str] = field(default_factory=list)
    numbers: Callable[[], int] = field(default_factory=lambda: count(FIRST).__next__)

    def __post_init__(self) -> None:
        store = self.store
        self.proposal = copied(store, Proposal)[0]
        own = self.proposal["id"]
        self.inputs = copied(store, ProposalInput, ProposalInput.proposal_id == own)
        self.script = copied(store, WatchedScript)[0]
        self.event = copied(store, AuditEvent, AuditEvent.action == "PROPOSAL_CREATED")[0]
        self.signatures = copied(store, Signature, Signature.proposal_id == own)
        self.decisions = copied(store, Decision, Decision.proposal_id == own)
        self.job = copied(store, Job)[0]
        self.keys = sorted({str(row["key_id"]) for row in self.decisions})

    def propose(self) -> None:
        new = os.urandom(16).hex()
        with self.engine.begin() as connection:
            inputs = [row | {"proposal_id": new, "txid": new * 2} for row in self.inputs]
            locks = [
                {"chain": "regtest", "txid": row["txid"], "vout": row["vout"], "family_id": new}
                for row in inputs
            ]
            row = self.proposal | {"id": new, "family_id": new, "txid_expected": new * 2, "status": "PENDING"}
            connection.execute(insert(Proposal), row | {"final_tx": None})
            connection.execute(insert(ProposalInput), inputs)
            connection.execute(insert(CoinLock), locks)
            place = {"address_index": self.numbers(), "script_pubkey": os.urandom(34)}
            connection.execute(insert(WatchedScript), self.script | place)
            vault = Vault.__table__.c
            connection.execute(
                update(Vault).where(vault.id == row["vault_id"]).values(updated_at=row["created_at"])
            )
            self._record(connection)
        self.ids.append(new)

    def approve(self, proposal_id: str, place: int) -> None:
        """The first or the second of two approvals; the second finishes the proposal."""
        key = self.keys[place]
        with self.engine.begin() as connection:
            which = Proposal.id == proposal_id
            connection.execute(update(Proposal).where(which).values(psbt=self.proposal["psbt"]))
            rows = [row for row in self.signatures if row["key_id"] == key]
            connection.execute(insert(Signature), [row | {"proposal_id": proposal_id} for row in rows])
            rows = [row for row in self.decisions if row["key_id"] == key]
            connection.execute(insert(Decision), [row | {"proposal_id": proposal_id} for row in rows])
            self._record(connection)
            if place:
                final = {"status": "SIGNED", "final_tx": self.proposal["psbt"]}
                connection.execute(update(Proposal).where(which).values(final))
                job = {name: value for name, value in self.job.items() if name != "id"}
                connection.execute(insert(Job), job | {"subject": proposal_id, "done_at": None})
                self._record(connection)

    def _record(self, connection: Connection) -> None:
        position, chain = self.numbers(), self.event["chain_id"]
        event = {"event_uid": os.urandom(16).hex(), "position": position}
        connection.execute(insert(AuditEvent), self.event | event)
        connection.execute(
            update(AuditHead)
            .where(AuditHead.chain_id == chain)
            .values(size=position, head_hash=os.urandom(32))
        )
        workspace = Revision.workspace_id == self.proposal["workspace_id"]
        connection.execute(update(Revision).where(workspace).values(number=position))
