"""A vault's controls: bound to the address book, not approved by makers, approved by who is named, frozen.

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
from custody.server.errors import Invalid, StateConflict
from custody.server.jobs.outbox import BROADCAST, enqueue
from custody.server.keys.quorums import able_of, approver
from custody.server.mail.waiting import tell_waiting
from custody.server.people.names import approver_names, names_of, shown_approvers
from custody.server.people.staff import membership_of
from custody.server.proposals.bounds import require_approvers
from custody.server.proposals.completing import complete_what_waits
from custody.server.proposals.screening import name_another
from custody.server.rules.audit import Category, Event
from custody.server.rules.lifecycle import TO_BROADCAST
from custody.server.second_person.named import approver_words
from custody.server.shown import shape_of
from custody.server.store.models import ProposalRow, RoleRow, VaultRow, VaultSignerRow, WebhookRow
from custody.server.vaults.stored import line_before, vault_in
from custody.server.webhooks.calls import require_enabled

# How long the first member's request waits for the second.
UNFREEZE_LIFETIME: Final = timedelta(hours=24)
MAX_SHOWN: Final = 100


_BOUNDS = (
    "pays [{only_address_book}the address book alone|any address], "
    "makers [{maker_may_approve}may approve|may not approve]"
    "[, one approval comes from each of the roles {approving_roles}]"
    "[, one approval comes from {approving_users}]"
    "[, {webhook} screens its proposals for {seconds} seconds][{goes_on}, and without its answer they go on]"
)
# By the names of the request's fields and the record's.
CONTROLS: Final = tuple(
    name for name in wire.UpdateVaultControlsRequest.model_fields if name not in VaultRequest.model_fields
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
    wanted = _in_full(ctx, request)
    return (
        is_unbound
        or not {*vault.approvers}.issubset(wanted.approvers or ())
        or (request.maker_may_approve and not vault.maker_may_approve)
        or (vault.screening_webhook_id is not None and _screens_less(vault, wanted))
    )


def _screens_less(vault: VaultRow, wanted: wire.UpdateVaultControlsRequest) -> bool:
    """By another program, or none; or what it does not answer goes on, or does so sooner."""
    is_sooner = (wanted.screening_seconds or 0) < vault.screening_seconds
    opens = wanted.screening_fails_open and (is_sooner or not vault.screening_fails_open)
    return bool(opens) or wanted.screening_webhook_id != vault.screening_webhook_id


def _in_full(ctx: Ctx, request: wire.UpdateVaultControlsRequest) -> wire.UpdateVaultControlsRequest:
    vault = vault_in(ctx.db, ctx.access, request.vault_id)
    left_out = {name: getattr(vault, name) for name in CONTROLS if getattr(request, name) is None}
    return request.model_copy(
        update={name: wire.NO_SCREENING if value is None else value for name, value in left_out.items()}
    )


def _in_force(ctx: Ctx, requests: Sequence[wire.UpdateVaultControlsRequest]) -> list[dict[str, Json]]:
    found = []
    for vault in [ctx.db.get_one(VaultRow, each.vault_id) for each in requests]:
        webhook = vault.screening_webhook_id and ctx.db.get_one(WebhookRow, vault.screening_webhook_id).url
        in_force = {name: getattr(vault, name) for name in CONTROLS}
        in_force["approvers"] = "; ".join(approver_words(ctx.db, key) for key in vault.approvers) or "none"
        found.append(in_force | {"screening_webhook_id": webhook or wire.NO_SCREENING})
    return found


@serves(UPDATE_VAULT_CONTROLS, ChangeApproval(_loosens, _in_force, _in_full))
def update_vault_controls(ctx: Ctx, request: wire.UpdateVaultControlsRequest) -> wire.VaultControls:
    """Raises NotFound (also the webhook, or a role) and Invalid (an approver who is no member), StateConflict
    (the webhook is disabled), TooFewSigners (none of the signers can give an approval that is asked for).
    """
    vault, request = vault_in(ctx.db, ctx.access, request.vault_id), _in_full(ctx, request)
    webhook_id = None if request.screening_webhook_id == wire.NO_SCREENING else request.screening_webhook_id
    is_another = webhook_id != vault.screening_webhook_id
    if webhook_id is not None and is_another:
        require_enabled(ctx.find(WebhookRow, webhook_id, "webhook"))
    before, makers_could = vault.approvers, vault.maker_may_approve
    for name in CONTROLS:
        setattr(vault, name, getattr(request, name))
    vault.screening_webhook_id = webhook_id
    if is_another:
        name_another(ctx.db, ctx.tools, vault)
    if vault.approvers != before:
        _require_here(ctx, vault)
        require_approvers(ctx.db, vault)
    if (vault.approvers, vault.maker_may_approve) != (before, makers_could):
        complete_what_waits(ctx.db, vault, ctx.now)
    ids = {kind: [each[5:] for each in vault.approvers if each.startswith(kind)] for kind in ("role", "user")}
    return _changed(
        ctx,
        vault,
        CONTROLS_REPLACED,
        only_address_book=vault.only_address_book,
        maker_may_approve=vault.maker_may_approve,
        webhook=webhook_id,
        seconds=vault.screening_seconds,
        goes_on=webhook_id is not None and vault.screening_fails_open,
        approving_roles=ids["role"],
        approving_users=ids["user"],
    )


def _require_here(ctx: Ctx, vault: VaultRow) -> None:
    """The roles and people are of the vault's workspace."""
    for place, key in enumerate(vault.approvers):
        number = int(key[5:])
        if key.startswith("role"):
            ctx.find(RoleRow, number, "role")
        elif membership_of(ctx.db, number, vault.workspace_id) is None:
            raise Invalid.at(f"/approvers/{place}", f"User {number} is not a member of this workspace.")


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
    names = names_of(db, ctx.access, (each for each in (vault.frozen_by, asked_by) if each is not None))
    able = able_of(db, [vault.id])[vault.id] if vault.approvers else ()
    waiting, on_network = _signed(db, vault)
    return shape_of(
        wire.VaultControls,
        vault,
        vault_id=vault.id,
        named_approvers=shown_approvers(
            vault.approvers, approver_names(db, ctx.access, vault.approvers), able
        ),
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
