"""Writing webhook events in the transaction of the change, with a delivery for each webhook that subscribes
to it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import bindparam, func, insert, select
from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus, TroubleKind
from custody.schemas.webhooks import EventKind
from custody.server.domain.credentials import new_id
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.domain.token_status import contract_status
from custody.server.domain.webhooks import carried, kind_of_status, wants
from custody.server.service.jobs.outbox import enqueue_new
from custody.server.service.token_status import token_families
from custody.server.store.models import (
    ChainCoin,
    Contract,
    ContractCall,
    Key,
    Proposal,
    Vault,
    VaultSigner,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
)

WEBHOOK: Final = "webhook"


class WebhookEvents:
    def __init__(self, clock: Clock, random: RandomBytes) -> None:
        self._clock = clock
        self._random = random

    def tell(self, db: Session, workspace_id: int, kind: EventKind, data: Mapping[str, Any]) -> None:
        """Where no webhook of the workspace subscribes to the kind, this reads one index and writes
        nothing.
        """
        wanted_by = self._wanting(db, workspace_id, kind)
        if wanted_by:
            self._write(db, workspace_id, kind, data, wanted_by)

    def are_wanted(self, db: Session, workspace_id: int, kind: EventKind) -> bool:
        """Whether any webhook subscribes, for a caller that has to read more before it can tell."""
        return bool(self._wanting(db, workspace_id, kind))

    @staticmethod
    def is_anybody_listening(db: Session, workspace_id: int) -> bool:
        """Whether the workspace has a webhook that is on."""
        return db.execute(_LISTENING, {"workspace_id": workspace_id}).first() is not None

    def ping(self, db: Session, webhook: Webhook) -> WebhookDelivery:
        """To this webhook alone, whatever kinds it subscribes to."""
        data = {"webhook_id": webhook.id}
        (delivery_id,) = self._write(db, webhook.workspace_id, EventKind.PING, data, [webhook.id])
        return db.get_one(WebhookDelivery, delivery_id)

    @staticmethod
    def _wanting(db: Session, workspace_id: int, kind: EventKind) -> list[str]:
        """The ids of the webhooks that subscribe to the kind."""
        found = db.execute(_LISTENING, {"workspace_id": workspace_id})
        return [webhook_id for webhook_id, kinds in found if wants(kinds, kind)]

    def _write(
        self,
        db: Session,
        workspace_id: int,
        kind: EventKind,
        data: Mapping[str, Any],
        webhooks: Sequence[str],
    ) -> list[str]:
        """The ids of the deliveries. Three statements, for any number of webhooks: a block may bring
        thousands of deposits, and all writers wait for the process that stores them.
        """
        now, event_id = self._clock(), new_id(self._random)
        event = {
            "id": event_id,
            "workspace_id": workspace_id,
            "sequence": _next_sequence(db, workspace_id),
            "kind": kind.value,
            "payload": carried(kind, data),
            "created_at": now,
        }
        deliveries = [self._delivery(webhook, event_id, now) for webhook in webhooks]
        ids = [delivery["id"] for delivery in deliveries]
        db.execute(insert(WebhookEvent), [event])
        db.execute(insert(WebhookDelivery), deliveries)
        enqueue_new(db, WEBHOOK, ids, now)
        return ids

    def _delivery(self, webhook_id: str, event_id: str, now: datetime) -> dict[str, Any]:
        return {
            "id": new_id(self._random),
            "webhook_id": webhook_id,
            "event_id": event_id,
            "status": "pending",
            "attempts": 0,
            "queued_at": now,
            "next_attempt_at": now,
            "created_at": now,
        }


_LISTENING = (
    select(Webhook.id, Webhook.kinds)
    .where(Webhook.workspace_id == bindparam("workspace_id"), Webhook.disabled_at.is_(None))
    .order_by(Webhook.created_at, Webhook.id)
)


def _next_sequence(db: Session, workspace_id: int) -> int:
    """One writer at a time (ADR 13): numbers are unique, and in the order of the commits."""
    newest = select(func.max(WebhookEvent.sequence)).where(WebhookEvent.workspace_id == workspace_id)
    return (db.scalar(newest) or 0) + 1


def event_data(proposal: Proposal, **more: object) -> dict[str, Any]:
    """The proposal as it is now. ``more``: what a kind carries besides."""
    return {
        "psbt_id": proposal.id,
        "vault_id": proposal.vault_id,
        "tx_type": proposal.tx_type,
        "status": proposal.status,
        "txid": proposal.txid,
        "amount_sats": sum(proposal.amounts_sats),
        "fee_sats": proposal.fee_sats,
        "block_height": proposal.block_height,
        "block_hash": proposal.block_hash,
        **more,
    }


def tell_status(events: WebhookEvents, db: Session, proposal: Proposal) -> None:
    """Tells that the proposal has reached its present status."""
    kind = kind_of_status(ProposalStatus(proposal.status))
    events.tell(db, proposal.workspace_id, kind, event_data(proposal))


def tell_trouble(events: WebhookEvents, db: Session, proposal: Proposal, kind: TroubleKind | None) -> None:
    """Tells that something is wrong with its transaction by now, or nothing any more, where that is news."""
    told = proposal.told_trouble
    is_invalidated = proposal.status == ProposalStatus.INVALIDATED.value
    if kind == told or (kind is None and is_invalidated and proposal.trouble == TroubleKind.CONFLICT):
        # The watcher says next what the conflict of an invalidated one has become.
        return
    proposal.told_trouble = kind
    about = EventKind.PROPOSAL_TROUBLE_ENDED if kind is None else EventKind.PROPOSAL_TROUBLED
    events.tell(db, proposal.workspace_id, about, event_data(proposal, trouble=kind or told))


def tell_token(events: WebhookEvents, db: Session, proposal: Proposal) -> None:
    """Tells how the token or the call stands that the proposal's family is of, where that is news."""
    # A token's family begins with a version that carries its data.
    is_other = proposal.family_id == proposal.id and proposal.op_return_hex is None
    if is_other or not events.is_anybody_listening(db, proposal.workspace_id):
        return
    of_family = {"family_id": proposal.family_id}
    told = db.scalars(_TOKEN_OF, of_family).first() or db.scalars(_CALL_OF, of_family).first()
    if told is None:
        return
    chain = db.get_one(Vault, proposal.vault_id).chain
    family = token_families(db, chain, [proposal.family_id])[proposal.family_id]
    of_call = isinstance(told, ContractCall)
    status = family.status.value if of_call else contract_status(family.status).value
    if status == told.told_status:
        return
    told.told_status = status
    data = {"psbt_id": family.best.id, "txid": family.best.txid, "status": status, "vault_id": told.vault_id}
    kind = EventKind(f"{'call' if of_call else 'token'}.{status.lower()}")
    events.tell(db, told.workspace_id, kind, data | _named(told))


def _named(told: Contract | ContractCall) -> dict[str, Any]:
    if isinstance(told, Contract):
        return {"contract_uid": told.uid}
    return {
        "contract_uid": told.contract_uid,
        "call_uid": told.uid,
        "function_name": told.function_name,
    }


_TOKEN_OF = select(Contract).where(Contract.deploy_family_id == bindparam("family_id"))
_CALL_OF = select(ContractCall).where(ContractCall.family_id == bindparam("family_id"))


def tell_revoked(events: WebhookEvents, db: Session, key: Key) -> None:
    """Tells every workspace with a vault that the key has a place in."""
    places = (
        select(Vault.workspace_id, Vault.id)
        .join(VaultSigner, VaultSigner.vault_id == Vault.id)
        .where(VaultSigner.key_id == key.id)
        .order_by(Vault.workspace_id, Vault.created_at, Vault.id)
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


@dataclass(frozen=True)
class Deposits:
    """Tells of coins that a vault received. The vault's own proposals tell of themselves."""

    events: WebhookEvents

    def seen(self, db: Session, coin: ChainCoin) -> None:
        self._tell(db, coin, EventKind.DEPOSIT_SEEN)

    def moved(self, db: Session, coin: ChainCoin, before: str | None) -> None:
        """``before``: the block that the coin was in; the coin has its present block."""
        if coin.block_hash == before:
            return
        is_waiting = coin.block_hash is None
        self._tell(db, coin, EventKind.DEPOSIT_UNCONFIRMED if is_waiting else EventKind.DEPOSIT_CONFIRMED)

    def removed(self, db: Session, coin: ChainCoin) -> None:
        self._tell(db, coin, EventKind.DEPOSIT_REMOVED)

    def _tell(self, db: Session, coin: ChainCoin, kind: EventKind) -> None:
        vault = None if coin.vault_id is None else db.get(Vault, coin.vault_id)
        # A coin in a member's own profile does not concern the workspace.
        if vault is None or not self.events.are_wanted(db, vault.workspace_id, kind) or _is_own(db, coin):
            return
        data = {
            "vault_id": vault.id,
            "txid": coin.txid,
            "vout": coin.vout,
            "amount_sats": coin.amount_sats,
            "block_height": coin.height,
            "block_hash": coin.block_hash,
        }
        self.events.tell(db, vault.workspace_id, kind, data)


def _is_own(db: Session, coin: ChainCoin) -> bool:
    """Whether the coin is change, or a payment by the vault to itself. A forward comes from a member's
    profile: to the vault it is a deposit.
    """
    query = select(Proposal.id).where(
        Proposal.txid_expected == coin.txid,
        Proposal.vault_id == coin.vault_id,
        Proposal.profile_key_id.is_(None),
    )
    return db.scalars(query.limit(1)).first() is not None
