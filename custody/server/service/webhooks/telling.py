"""What webhooks are told of proposals, deposits and keys."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus
from custody.schemas.webhook_events import EventKind
from custody.server.domain.webhook_events import kind_of_status
from custody.server.service.webhooks.events import WebhookEvents
from custody.server.store.models import ChainCoin, Key, Proposal, Vault, VaultSigner


def told_of(proposal: Proposal, **more: object) -> dict[str, Any]:
    """As it is now. ``more``: what a kind carries besides."""
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
    """It has come to the status that it is in."""
    kind = kind_of_status(ProposalStatus(proposal.status))
    events.tell(db, proposal.workspace_id, kind, told_of(proposal))


def tell_revoked(events: WebhookEvents, db: Session, key: Key) -> None:
    """Every workspace in whose vaults the key has a place: there it counts no more, or only to move coins on."""
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
    """Tells of coins that came to a vault otherwise than by a proposal of its own, which tells of itself."""

    events: WebhookEvents

    def seen(self, db: Session, coin: ChainCoin) -> None:
        self._tell(db, coin, EventKind.DEPOSIT_SEEN)

    def moved(self, db: Session, coin: ChainCoin, before: str | None) -> None:
        """``before``: the block that it was in; the coin says where it is now."""
        if coin.block_hash == before:
            return
        is_waiting = coin.block_hash is None
        self._tell(db, coin, EventKind.DEPOSIT_UNCONFIRMED if is_waiting else EventKind.DEPOSIT_CONFIRMED)

    def removed(self, db: Session, coin: ChainCoin) -> None:
        self._tell(db, coin, EventKind.DEPOSIT_REMOVED)

    def _tell(self, db: Session, coin: ChainCoin, kind: EventKind) -> None:
        vault = None if coin.vault_id is None else db.get(Vault, coin.vault_id)
        # A coin in a member's own profile is no business of a workspace's.
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
    """Change, and what the vault pays to itself. A forward comes from a member's profile: to the vault it is a deposit."""
    query = select(Proposal.id).where(
        Proposal.txid_expected == coin.txid,
        Proposal.vault_id == coin.vault_id,
        Proposal.profile_key_id.is_(None),
    )
    return db.scalars(query.limit(1)).first() is not None
