"""Replacing a vault: a new one takes its place, and its coins may move there alone.

Two people confirm the replacement, so no limit counts a move, and the address book does not bind it. Nothing
is proposed yet: sweeps are ordinary proposals, and they are the progress.
"""

from collections.abc import Sequence

from pydantic import ValidationError
from sqlalchemy import Select, or_, select
from sqlalchemy.orm import Session

from custody.common.text import btc
from custody.schemas import vaults as wire
from custody.schemas.changes import Json
from custody.schemas.proposals import CancelPsbtRequest, ProposalStatus, TxType
from custody.schemas.vaults import REPLACE_VAULT
from custody.server.calls import ChangeApproval, Ctx, serves
from custody.server.errors import Invalid, StateConflict
from custody.server.proposals.bounds import (
    require_approvers,
    require_signers,
    vault_to_spend,
)
from custody.server.proposals.ending import cancel_psbt
from custody.server.rules.audit import Category, Event
from custody.server.second_person.named import person_words
from custody.server.store.models import (
    ChainCoinRow,
    ProposalRow,
    SignatureRow,
    UserRow,
    VaultRow,
    VaultSignerRow,
)
from custody.server.vaults.calls import create_wallet, vault_records
from custody.server.vaults.controls import CONTROLS
from custody.server.vaults.stored import address_script, line_before, replacement_of, vault_in

# Payments that end, beside a change.
SHOWN = 20

REPLACED = Event(
    "VAULT_REPLACED",
    "replaced the vault {vault} by the new {new_vault} // {cancelled} payments cancelled",
    Category.VAULTS,
)


def _in_full(ctx: Ctx, request: wire.ReplaceVaultRequest) -> wire.ReplaceVaultRequest:
    """With the quorum that it leaves as it is: whoever confirms reads who signs from then on."""
    old = vault_in(ctx.db, ctx.access, request.vault_id)
    same = select(VaultSignerRow.user_id).where(VaultSignerRow.vault_id == old.id)
    signers = request.signers or list(ctx.db.scalars(same.order_by(VaultSignerRow.key_index)))
    return request.model_copy(update={"m": request.m or old.m, "signers": signers})


def _in_force(ctx: Ctx, requests: Sequence[wire.ReplaceVaultRequest]) -> list[dict[str, Json]]:
    """The quorum of each vault, its signers by name, and the payments that end."""
    vaults = [ctx.db.get_one(VaultRow, each.vault_id) for each in requests]
    return [
        {"m": each.m, "signers": "; ".join(_names(ctx, each)), "ends": "; ".join(_ending(ctx, each))}
        for each in vaults
    ]


def _ending(ctx: Ctx, vault: VaultRow) -> list[str]:
    """The first of those that `_end_payments` cancels."""
    line = [vault, *line_before(ctx.db, vault)]
    pending = ctx.db.execute(_pending(line).where(~_IS_SIGNED).limit(SHOWN + 1)).all()
    names = [f"{each.description or 'a payment'} ({each.id})" for each, _ in pending if _ends(each)]
    return [*names[:SHOWN], *(["and others"] if len(pending) > SHOWN else [])]


def _names(ctx: Ctx, vault: VaultRow) -> list[str]:
    signs = UserRow.id == VaultSignerRow.user_id
    query = select(UserRow).join(VaultSignerRow, signs).where(VaultSignerRow.vault_id == vault.id)
    return [person_words(each) for each in ctx.db.scalars(query.order_by(VaultSignerRow.key_index))]


@serves(REPLACE_VAULT, ChangeApproval(in_force=_in_force, in_full=_in_full))
def replace_vault(ctx: Ctx, request: wire.ReplaceVaultRequest) -> wire.ReplacedVault:
    """Makes the new vault, marks the old one and cancels what nobody has signed. Raises what `create_wallet`
    does, VaultFrozen, StateConflict (it is replaced already), TooFewSigners (too few are left to move
    its coins), PolicyUnavailable.
    """
    old = vault_to_spend(ctx.db, ctx.access, request.vault_id)
    replacement = replacement_of(ctx.db, old)
    if replacement is not None:
        raise StateConflict(f"The vault {old.name} is replaced by {replacement.name} already.")
    made = create_wallet(ctx, _wanted(ctx, old, request))
    new = ctx.db.get_one(VaultRow, made.id)
    for name in CONTROLS:
        setattr(new, name, getattr(old, name))
    require_approvers(ctx.db, new)
    old.replaced_by_id, old.updated_at = new.id, ctx.now
    ctx.db.flush()
    before = line_before(ctx.db, old)
    if not before and _has_coins(ctx.db, old):
        # Whoever sweeps need not be the one who asks. What it replaces pays the new vault in any case.
        require_signers(ctx.db, old, {address_script(new)}, maker=0)
    cancelled, signed = _end_payments(ctx, [old, *before])
    payload = {"vault_id": old.id, "replaced_by": new.id}
    ctx.event(REPLACED, payload, vault=old.id, new_vault=new.id, cancelled=len(cancelled))
    ctx.tools.changes.moved(ctx.db, old.workspace_id)
    (shown,) = vault_records(ctx, [new])
    return wire.ReplacedVault(
        vault=shown.model_copy(update={"warnings": made.warnings}),
        cancelled_psbt_ids=cancelled,
        signed_psbt_ids=signed,
    )


def _wanted(ctx: Ctx, old: VaultRow, request: wire.ReplaceVaultRequest) -> wire.CreateWalletRequest:
    policy = ctx.tools.policies.of(old)
    request = _in_full(ctx, request)
    try:
        return wire.CreateWalletRequest(
            workspace_id=request.workspace_id,
            name=request.name,
            network=old.network,
            m=request.m,
            signers=request.signers,
            transaction_limit=btc(policy.limit),
            per_cycle=policy.is_per_cycle,
            cycle_period=policy.cycle.period,
            cycle_day=policy.cycle.day,
        )
    except ValidationError as error:
        raise Invalid.at("/signers", error.errors()[0]["msg"]) from error


def _has_coins(db: Session, vault: VaultRow) -> bool:
    coins = select(ChainCoinRow.txid).where(
        ChainCoinRow.vault_id == vault.id, ChainCoinRow.spent_height.is_(None)
    )
    return db.scalars(coins.limit(1)).first() is not None


def _end_payments(ctx: Ctx, vaults: Sequence[VaultRow]) -> tuple[list[str], list[str]]:
    """Cancels the pending payments and new tokens without a signature, and the sweeps that would still go to
    the old vault. Returns their ids, and those of the signed ones.
    """
    cancelled, signed = [], []
    for proposal, is_signed in ctx.db.execute(_pending(vaults)).all():
        if is_signed:
            signed.append(proposal.id)
        elif _ends(proposal):
            why = CancelPsbtRequest(
                psbt_id=proposal.id, workspace_id=ctx.access.workspace_id, reason="Its vault is replaced."
            )
            cancel_psbt(ctx, why)
            cancelled.append(proposal.id)
    return cancelled, signed


# As `released_signatures` counts them.
_IS_SIGNED = or_(
    ProposalRow.withdrawn_signatures > 0,
    select(SignatureRow.proposal_id).where(SignatureRow.proposal_id == ProposalRow.id).exists(),
)


def _pending(vaults: Sequence[VaultRow]) -> Select[ProposalRow, bool]:
    """Payments and new tokens, with whether signatures are out."""
    pending = select(ProposalRow, _IS_SIGNED).where(
        ProposalRow.vault_id.in_([each.id for each in vaults]),
        ProposalRow.status == ProposalStatus.PENDING.value,
        ProposalRow.tx_type.in_((TxType.SEND.value, TxType.DEPLOY.value)),
    )
    return pending.order_by(ProposalRow.created_at, ProposalRow.id)


def _ends(proposal: ProposalRow) -> bool:
    """What takes a payment back has no recipient, and goes on."""
    return proposal.replaces_id is None or bool(proposal.recipients)
