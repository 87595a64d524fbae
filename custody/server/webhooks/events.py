"""Writing webhook events in the transaction of the change, with a delivery for each webhook that subscribes
to it.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from sqlalchemy import BindParameter, bindparam, func, insert, select
from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus, TroubleKind
from custody.schemas.webhooks import EventKind
from custody.server.jobs.outbox import enqueue_new
from custody.server.rules.credentials import WorkspaceAccess, new_id
from custody.server.rules.ports import Clock, RandomBytes
from custody.server.rules.webhooks import DEPOSIT, EVENT_OF_ACTION, PROPOSAL, carried, kind_of_status, wants
from custody.server.store import models
from custody.server.store.store import chunks, gather, rows_in
from custody.server.tokens.status import OF_CONTRACT, token_families

# The kinds of the jobs that deliver: a question waits for no other delivery.
WEBHOOK: Final = "webhook"
QUESTION: Final = "question"
# The data of an event that webhooks are told of later.
LATER: Final[Mapping[str, Any]] = {}
_TOLD: Final = "events of this transaction"


class WorkspaceEvent(NamedTuple):
    """An event of a workspace."""

    workspace_id: int
    kind: EventKind
    data: Mapping[str, Any]


class WebhookEvents:
    def __init__(self, clock: Clock, random: RandomBytes) -> None:
        self._clock = clock
        self._random = random

    def tell(self, db: Session, workspace_id: int, kind: EventKind, data: Mapping[str, Any]) -> None:
        """At the end of the transaction. Writes nothing where no webhook of the workspace subscribes to the
        kind.
        """
        gather(db, _TOLD, WorkspaceEvent(workspace_id, kind, data), partial(self._tell_all, db))

    def tell_action(
        self, db: Session, access: WorkspaceAccess, action: str, data: Mapping[str, Any] | None
    ) -> None:
        """Of an action that the audit log records; nothing for one that is no event, or told of `LATER`."""
        if action not in EVENT_OF_ACTION or data is LATER:
            return
        assert data is not None, f"{action} needs the data of its webhook event"
        if access.has_webhooks:
            self.tell(db, access.workspace_id, EVENT_OF_ACTION[action], data)

    def _tell_all(self, db: Session, events: Collection[WorkspaceEvent]) -> None:
        """Writes all in this order, with as many statements as for one: a block may have thousands of
        deposits, and other writers wait.
        """
        listening = defaultdict[int, list[tuple[str, list[str]]]](list)
        for some in chunks({one.workspace_id for one in events}):
            for workspace_id, webhook_id, kinds in db.execute(_LISTENING, {"workspace_ids": some}):
                listening[workspace_id].append((webhook_id, kinds))
        wanted = [
            (one, [webhook_id for webhook_id, kinds in listening[one.workspace_id] if wants(kinds, one.kind)])
            for one in events
        ]
        self._write(db, [(one, webhooks) for one, webhooks in wanted if webhooks])

    def send(
        self, db: Session, webhook_id: str, workspace_id: int, kind: EventKind, data: Mapping[str, Any]
    ) -> str:
        """To this webhook only, whatever kinds it subscribes to. Returns the delivery's id."""
        event = WorkspaceEvent(workspace_id, kind, data)
        (delivery_id,) = self._write(db, [(event, [webhook_id])], job_of(kind))
        return delivery_id

    def _write(
        self, db: Session, wanted: Sequence[tuple[WorkspaceEvent, Sequence[str]]], job: str = WEBHOOK
    ) -> list[str]:
        """``wanted``: events, and the ids of the webhooks that subscribe to each. Returns the deliveries'
        ids.
        """
        if not wanted:
            return []
        now = self._clock()
        newest = _newest_sequences(db, {one.workspace_id for one, _ in wanted})
        events, deliveries = [], list[dict[str, Any]]()
        for one, webhooks in wanted:
            newest[one.workspace_id] += 1
            event_id = new_id(self._random)
            events.append(
                {
                    "id": event_id,
                    "workspace_id": one.workspace_id,
                    "sequence": newest[one.workspace_id],
                    "kind": one.kind.value,
                    "payload": carried(one.kind, one.data),
                    "created_at": now,
                }
            )
            deliveries += [
                {
                    "id": new_id(self._random),
                    "webhook_id": webhook_id,
                    "event_id": event_id,
                    "status": "pending",
                    "attempts": 0,
                    "queued_at": now,
                    "next_attempt_at": now,
                    "created_at": now,
                }
                for webhook_id in webhooks
            ]
        ids = [delivery["id"] for delivery in deliveries]
        db.execute(insert(models.WebhookEventRow), events)
        db.execute(insert(models.WebhookDeliveryRow), deliveries)
        enqueue_new(db, job, ids, now)
        return ids


def job_of(kind: str) -> str:
    """The kind of the job that delivers an event of this kind."""
    return QUESTION if kind == EventKind.PROPOSAL_SCREENING else WEBHOOK


_WORKSPACES: BindParameter[int] = bindparam("workspace_ids", expanding=True)
_LISTENING = (
    select(models.WebhookRow.workspace_id, models.WebhookRow.id, models.WebhookRow.kinds)
    .where(models.WebhookRow.workspace_id.in_(_WORKSPACES), models.WebhookRow.disabled_at.is_(None))
    .order_by(models.WebhookRow.created_at, models.WebhookRow.id)
)
# A subquery for each workspace uses the index: a maximum with GROUP BY would read all their events.
_NEWEST = select(
    models.WorkspaceRow.id,
    select(func.max(models.WebhookEventRow.sequence))
    .where(models.WebhookEventRow.workspace_id == models.WorkspaceRow.id)
    .scalar_subquery(),
).where(models.WorkspaceRow.id.in_(_WORKSPACES))


def _newest_sequences(db: Session, workspace_ids: Collection[int]) -> dict[int, int]:
    """One writer at a time (ADR 13): numbers are unique, and in the order of the commits."""
    rows = (db.execute(_NEWEST, {"workspace_ids": some}) for some in chunks(workspace_ids))
    return {workspace_id: newest or 0 for some in rows for workspace_id, newest in some}


def event_data(proposal: models.ProposalRow, **more: object) -> dict[str, Any]:
    """The event data of a proposal. ``more``: further fields of the kind."""
    own = {"psbt_id": proposal.id, "amount_sats": sum(proposal.amounts_sats)}
    return {name: getattr(proposal, name) for name in PROPOSAL if name not in own} | own | more


def tell_status(events: WebhookEvents, db: Session, proposal: models.ProposalRow) -> None:
    """Tells that the proposal has reached its present status."""
    kind = kind_of_status(ProposalStatus(proposal.status))
    events.tell(db, proposal.workspace_id, kind, event_data(proposal))


def tell_trouble(
    events: WebhookEvents, db: Session, proposal: models.ProposalRow, kind: TroubleKind | None
) -> None:
    """Notifies of a change of the transaction's trouble."""
    reported = proposal.told_trouble
    is_invalidated = proposal.status == ProposalStatus.INVALIDATED.value
    if kind == reported or (kind is None and is_invalidated and proposal.trouble == TroubleKind.CONFLICT):
        # The watcher next finds out what has become of the conflict.
        return
    proposal.told_trouble = kind
    about = EventKind.PROPOSAL_TROUBLE_ENDED if kind is None else EventKind.PROPOSAL_TROUBLED
    events.tell(db, proposal.workspace_id, about, event_data(proposal, trouble=kind or reported))


def tell_token(events: WebhookEvents, db: Session, proposal: models.ProposalRow) -> None:
    """Notifies of a change of the status of the family's token or call."""
    # A token's family begins with a version that carries its data.
    is_other = proposal.family_id == proposal.id and proposal.op_return_hex is None
    if is_other or db.execute(_LISTENING, {"workspace_ids": [proposal.workspace_id]}).first() is None:
        return
    of_family = {"family_id": proposal.family_id}
    row = db.scalars(_TOKEN_OF, of_family).first() or db.scalars(_CALL_OF, of_family).first()
    if row is None:
        return
    chain = db.get_one(models.VaultRow, proposal.vault_id).chain
    family = token_families(db, chain, [proposal.family_id])[proposal.family_id]
    of_call = isinstance(row, models.ContractCallRow)
    status = family.status.value if of_call else OF_CONTRACT[family.status].value
    if status == row.told_status:
        return
    row.told_status = status
    data = {"psbt_id": family.best.id, "txid": family.best.txid, "status": status, "vault_id": row.vault_id}
    kind = EventKind(f"{'call' if of_call else 'token'}.{status.lower()}")
    events.tell(db, row.workspace_id, kind, data | _named(row))


def _named(row: models.ContractRow | models.ContractCallRow) -> dict[str, Any]:
    if isinstance(row, models.ContractRow):
        return {"contract_uid": row.uid}
    return {
        "contract_uid": row.contract_uid,
        "call_uid": row.uid,
        "function_name": row.function_name,
    }


_TOKEN_OF = select(models.ContractRow).where(models.ContractRow.deploy_family_id == bindparam("family_id"))
_CALL_OF = select(models.ContractCallRow).where(models.ContractCallRow.family_id == bindparam("family_id"))


def tell_revoked(events: WebhookEvents, db: Session, key: models.KeyRow) -> None:
    """Notifies every workspace with a vault of which the key is a signer's."""
    places = (
        select(models.VaultRow.workspace_id, models.VaultRow.id)
        .join(models.VaultSignerRow, models.VaultSignerRow.vault_id == models.VaultRow.id)
        .where(models.VaultSignerRow.key_id == key.id)
        .order_by(models.VaultRow.workspace_id, models.VaultRow.created_at, models.VaultRow.id)
    )
    served: dict[int, list[str]] = {}
    for workspace_id, vault_id in db.execute(places):
        served.setdefault(workspace_id, []).append(vault_id)
    for workspace_id, vault_ids in served.items():
        data = {
            "key_id": key.id,
            "user_id": key.user_id,
            "reason": key.revoked_reason,
            "vault_ids": vault_ids,
        }
        events.tell(db, workspace_id, EventKind.KEY_REVOKED, data)


def coin_data(coin: models.ChainCoinRow) -> dict[str, Any]:
    """The event data of a coin as it is now."""
    own = {"block_height": coin.height}
    return {name: getattr(coin, name) for name in DEPOSIT if name not in own} | own


def tell_deposits(
    events: WebhookEvents, db: Session, deposits: Sequence[tuple[EventKind, Mapping[str, Any]]]
) -> None:
    """Notifies of deposits to vaults, of `coin_data`; the vaults' own proposals have events of their own.
    Coins of members' profiles are not notified: they do not concern the workspace.
    """
    of_vaults = [(kind, data) for kind, data in deposits if data["vault_id"] is not None]
    query = select(models.VaultRow.id, models.VaultRow.workspace_id)
    workspaces = dict(rows_in(db, query, models.VaultRow.id, {data["vault_id"] for _, data in of_vaults}))
    own = _own(db, {data["txid"] for _, data in of_vaults})
    for kind, data in of_vaults:
        if (data["txid"], data["vault_id"]) not in own:
            events.tell(db, workspaces[data["vault_id"]], kind, data)


def _own(db: Session, txids: Collection[str]) -> set[tuple[str, str]]:
    """Transactions and the vaults that proposed them: what those receive is change, or a payment to itself.
    A forward comes from a member's profile: to the vault it is a deposit.
    """
    query = select(models.ProposalRow.txid_expected, models.ProposalRow.vault_id).where(
        models.ProposalRow.profile_key_id.is_(None)
    )
    return {
        (txid, vault_id) for txid, vault_id in rows_in(db, query, models.ProposalRow.txid_expected, txids)
    }
