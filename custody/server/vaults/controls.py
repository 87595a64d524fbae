"""A vault's controls: bound to the address book, not approved by makers, frozen.

One member with PAYMENT_APPROVE freezes at once; it takes two to unfreeze. The platform accepts no proposal
and no approval of a frozen vault, and broadcasts nothing of it; a transaction on the network cannot be
stopped.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import select, union_all
from sqlalchemy.orm import Session

from custody.schemas import vaults as wire
from custody.schemas.changes import Json
from custody.schemas.common import VaultQuery, VaultRequest
from custody.schemas.proposals import ProposalStatus as Status
from custody.schemas.vaults import FREEZE_VAULT, UNFREEZE_VAULT, UPDATE_VAULT_CONTROLS, VAULT_CONTROLS
from custody.server.calls import ChangeApproval, Ctx, serves
from custody.server.errors import StateConflict
from custody.server.jobs.outbox import BROADCAST, enqueue
from custody.server.keys.quorums import approver
from custody.server.mail.waiting import tell_waiting
from custody.server.proposals.records import names_of
from custody.server.rules.audit import Category, Event
from custody.server.rules.lifecycle import TO_BROADCAST
from custody.server.shown import shape_of
from custody.server.store.models import ProposalRow, VaultRow, VaultSignerRow
from custody.server.vaults.stored import line_before, vault_in

# How long the first member's request waits for the second.
UNFREEZE_LIFETIME: Final = timedelta(hours=24)
MAX_SHOWN: Final = 100


_BOUNDS = (
    "pays [{only_address_book}the address book alone|any address], "
    "makers [{maker_may_approve}may approve|may not approve]"
)
CONTROLS_REPLACED = Event(
    "VAULT_CONTROLS_REPLACED", "changed what bounds the vault {vault}: it " + _BOUNDS, Category.VAULTS
)
FROZEN = Event("VAULT_FROZEN", "froze the vault {vault}[: {reason}]", Category.VAULTS)
UNFREEZE_ASKED = Event(
    "VAULT_UNFREEZE_ASKED",
    "asked to unfreeze the vault {vault}: another member has to agree",
    Category.VAULTS,
)
TAKEN_BACK = Event(
    "VAULT_UNFREEZE_TAKEN_BACK",
    "withdrew the request to unfreeze the vault {vault} // [reason: {reason}]",
    Category.VAULTS,
)
UNFROZEN = Event("VAULT_UNFROZEN", "unfroze the vault {vault}, as {user} had asked", Category.VAULTS)


@serves(VAULT_CONTROLS)
def vault_controls(ctx: Ctx, query: VaultQuery) -> wire.VaultControls:
    return _shown(ctx, vault_in(ctx.db, ctx.access, query.vault_id))


def _loosens(ctx: Ctx, request: wire.UpdateVaultControlsRequest) -> bool:
    vault = vault_in(ctx.db, ctx.access, request.vault_id)
    is_unbound = vault.only_address_book and not request.only_address_book
    return is_unbound or (request.maker_may_approve and not vault.maker_may_approve)


def _in_force(ctx: Ctx, requests: Sequence[wire.UpdateVaultControlsRequest]) -> list[dict[str, Json]]:
    vaults = [ctx.db.get_one(VaultRow, each.vault_id) for each in requests]
    return [
        {"only_address_book": each.only_address_book, "maker_may_approve": each.maker_may_approve}
        for each in vaults
    ]


@serves(UPDATE_VAULT_CONTROLS, ChangeApproval(_loosens, _in_force))
def update_vault_controls(ctx: Ctx, request: wire.UpdateVaultControlsRequest) -> wire.VaultControls:
    vault = vault_in(ctx.db, ctx.access, request.vault_id)
    vault.only_address_book = request.only_address_book
    vault.maker_may_approve = request.maker_may_approve
    return _changed(
        ctx,
        vault,
        CONTROLS_REPLACED,
        only_address_book=vault.only_address_book,
        maker_may_approve=vault.maker_may_approve,
    )


@serves(FREEZE_VAULT)
def freeze_vault(ctx: Ctx, request: wire.FreezeVaultRequest) -> wire.VaultControls:
    """On a frozen vault it cancels a request to unfreeze."""
    vault = vault_in(ctx.db, ctx.access, request.vault_id)
    was_frozen = vault.frozen_at is not None
    if was_frozen and vault.unfreeze_asked_by is None:
        return _shown(ctx, vault)
    vault.unfreeze_asked_at = vault.unfreeze_asked_by = None
    if was_frozen:
        return _changed(ctx, vault, TAKEN_BACK, reason=request.reason)
    vault.frozen_at, vault.frozen_by = ctx.now, ctx.caller.user_id
    vault.freeze_reason = request.reason
    return _changed(ctx, vault, FROZEN, reason=request.reason)


@serves(UNFREEZE_VAULT)
def unfreeze_vault(ctx: Ctx, request: VaultRequest) -> wire.VaultControls:
    vault = vault_in(ctx.db, ctx.access, request.vault_id)
    if vault.frozen_at is None:
        raise StateConflict("The vault is not frozen.")
    asked_by = _asked_by(ctx, vault)
    if asked_by is None:
        vault.unfreeze_asked_at, vault.unfreeze_asked_by = ctx.now, ctx.caller.user_id
        return _changed(ctx, vault, UNFREEZE_ASKED)
    if asked_by == ctx.caller.user_id:
        return _shown(ctx, vault)
    _unfreeze(ctx.db, vault, ctx.now)
    return _changed(ctx, vault, UNFROZEN, user=asked_by)


def _asked_by(ctx: Ctx, vault: VaultRow) -> int | None:
    """The member who asked to unfreeze, within the last day and still permitted; else None."""
    if vault.unfreeze_asked_at is None or ctx.now >= vault.unfreeze_asked_at + UNFREEZE_LIFETIME:
        return None
    return ctx.db.scalars(approver(vault.workspace_id, vault.unfreeze_asked_by)).first()


def _unfreeze(db: Session, vault: VaultRow, now: datetime) -> None:
    vault.frozen_at = vault.frozen_by = vault.freeze_reason = None
    vault.unfreeze_asked_at = vault.unfreeze_asked_by = None
    for one in (vault, *line_before(db, vault)):
        waiting, _ = _signed(db, one)
        for proposal_id in waiting:
            enqueue(db, BROADCAST, proposal_id, now)
    # No mails were sent while nothing could be signed.
    signers = select(VaultSignerRow.user_id).where(VaultSignerRow.vault_id == vault.id)
    tell_waiting(db, signers, now)


def _changed(ctx: Ctx, vault: VaultRow, event: Event, **facts: Any) -> wire.VaultControls:
    vault.updated_at = ctx.now
    ctx.db.flush()
    ctx.event(event, {"vault_id": vault.id}, vault=vault.id, **facts)
    ctx.tools.changes.moved(ctx.db, vault.workspace_id)
    return _shown(ctx, vault)


def _shown(ctx: Ctx, vault: VaultRow) -> wire.VaultControls:
    db, asked_by = ctx.db, _asked_by(ctx, vault)
    names = names_of(db, (each for each in (vault.frozen_by, asked_by) if each is not None))
    waiting, on_network = _signed(db, vault)
    return shape_of(
        wire.VaultControls,
        vault,
        vault_id=vault.id,
        is_frozen=vault.frozen_at is not None,
        frozen_by_name=None if vault.frozen_by is None else names.get(vault.frozen_by),
        unfreeze_asked_at=None if asked_by is None else vault.unfreeze_asked_at,
        unfreeze_asked_by=None if asked_by is None else str(asked_by),
        unfreeze_asked_by_name=None if asked_by is None else names.get(asked_by),
        waiting_psbt_ids=waiting,
        on_network_psbt_ids=on_network,
    )


def _signed(db: Session, vault: VaultRow) -> tuple[list[str], list[str]]:
    """The vault's own movements that wait for their broadcast, and those on the network, without forwards: of
    each the oldest ``MAX_SHOWN``, the oldest first.
    """
    # Each part is read in the order of an index.
    oldest = (
        select(ProposalRow.created_at, ProposalRow.id, ProposalRow.status)
        .where(
            ProposalRow.workspace_id == vault.workspace_id,
            ProposalRow.status == status.value,
            ProposalRow.vault_id == vault.id,
            ProposalRow.profile_key_id.is_(None),
        )
        .order_by(ProposalRow.created_at, ProposalRow.id)
        .limit(MAX_SHOWN)
        .subquery()
        for status in (*TO_BROADCAST, Status.BROADCASTING)
    )
    rows = sorted(map(tuple, db.execute(union_all(*map(select, oldest)))))
    on_network = [proposal_id for _, proposal_id, status in rows if status == Status.BROADCASTING.value]
    waiting = [proposal_id for _, proposal_id, status in rows if status != Status.BROADCASTING.value]
    return waiting[:MAX_SHOWN], on_network
