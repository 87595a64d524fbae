"""Replacing a vault: a new one takes its place, and its coins may move there alone.

Two people confirm the replacement, so no limit counts a move, and the address book does not bind it. Nothing
is proposed yet: sweeps are ordinary proposals, and they are the progress.
"""

from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas import vaults as wire
from custody.schemas.proposals import CancelPsbtRequest, CreatePsbtRequest, ProposalStatus, TxType
from custody.server.domain.audit import Category
from custody.server.domain.credentials import Caller, WorkspaceAccess
from custody.server.domain.errors import Invalid, StateConflict
from custody.server.domain.limits import in_btc
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.limits.limits import Limits, PolicyStore
from custody.server.service.proposals.bounds import replacement_of, require_signers, vault_to_spend
from custody.server.service.proposals.ending import Cancelling, released_signatures
from custody.server.service.requests.changes import Changes
from custody.server.service.stored_vaults import address_script
from custody.server.service.vaults import Vaults, vault_records
from custody.server.store.models import Proposal, Vault, VaultSigner


class VaultReplacement:
    def __init__(
        self,
        clock: Clock,
        audit: AuditLog,
        changes: Changes,
        policies: PolicyStore,
        limits: Limits,
        vaults: Vaults,
        cancelling: Cancelling,
    ) -> None:
        self._clock = clock
        self._audit = audit
        self._changes = changes
        self._policies = policies
        self._limits = limits
        self._vaults = vaults
        self._cancelling = cancelling

    def replace(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.ReplaceVaultRequest
    ) -> wire.ReplacedVault:
        """Makes the new vault, marks the old one and cancels what nobody has signed, in one transaction.

        Raises NotFound, VaultFrozen, StateConflict (it is replaced already, or the name is taken), Invalid,
        KeyAccountsExhausted, TooFewSigners (too few are left to move its coins), PolicyUnavailable.
        """
        old = vault_to_spend(db, access, request.vault_id)
        replacement = replacement_of(db, old)
        if replacement is not None:
            raise StateConflict(f"The vault {old.name} is replaced by {replacement.name} already.")
        made = self._vaults.create(db, caller, access, self._wanted(db, old, request))
        new = db.get_one(Vault, made.id)
        new.only_address_book, new.maker_may_approve = old.only_address_book, old.maker_may_approve
        old.replaced_by_id, old.updated_at = new.id, self._clock()
        db.flush()
        # Whoever sweeps need not be the one who asks.
        require_signers(db, old, {address_script(new)}, maker=0)
        cancelled, signed = self._end_payments(db, caller, access, old)
        what = f"vault {old.id}, by vault {new.id}, {len(cancelled)} payments cancelled"
        told = {"vault_id": old.id, "replaced_by": new.id}
        self._audit.record(db, caller, Category.VAULTS, "VAULT_REPLACED", what, access=access, told=told)
        self._changes.moved(db, old.workspace_id)
        (shown,) = vault_records(db, self._limits, [new])
        return wire.ReplacedVault(
            vault=shown.model_copy(update={"warnings": made.warnings}),
            cancelled_psbt_ids=cancelled,
            signed_psbt_ids=signed,
        )

    def _wanted(self, db: Session, old: Vault, request: wire.ReplaceVaultRequest) -> wire.CreateWalletRequest:
        policy = self._policies.of_vaults(db, [old.id])[old.id]
        same = select(VaultSigner.user_id).where(VaultSigner.vault_id == old.id)
        signers = request.signers or list(db.scalars(same.order_by(VaultSigner.key_index)))
        try:
            return wire.CreateWalletRequest(
                workspace_id=request.workspace_id,
                name=request.name,
                network=old.network,
                m=request.m or old.m,
                signers=signers,
                transaction_limit=in_btc(policy.limit),
                per_cycle=policy.is_per_cycle,
                cycle_period=policy.cycle.period,
                cycle_day=policy.cycle.day,
            )
        except ValidationError as error:
            raise Invalid.at("/signers", error.errors()[0]["msg"]) from error

    def _end_payments(
        self, db: Session, caller: Caller, access: WorkspaceAccess, old: Vault
    ) -> tuple[list[str], list[str]]:
        """Cancels the pending payments and new tokens without a signature. Returns their ids, and those of
        the signed ones. What takes a payment back has no recipient, and goes on.
        """
        pending = select(Proposal).where(
            Proposal.vault_id == old.id,
            Proposal.status == ProposalStatus.PENDING.value,
            Proposal.tx_type.in_((TxType.SEND.value, TxType.DEPLOY.value)),
        )
        cancelled, signed = [], []
        for proposal in db.scalars(pending.order_by(Proposal.created_at, Proposal.id)).all():
            if released_signatures(db, proposal):
                signed.append(proposal.id)
            elif proposal.replaces_id is None or proposal.recipients:
                why = CancelPsbtRequest(
                    psbt_id=proposal.id, workspace_id=access.workspace_id, reason="Its vault is replaced."
                )
                self._cancelling.cancel(db, caller, access, why)
                cancelled.append(proposal.id)
        return cancelled, signed

    @staticmethod
    def sweep_of(db: Session, access: WorkspaceAccess, request: wire.SweepVaultRequest) -> CreatePsbtRequest:
        """The ``create-psbt`` that moves what one transaction takes. Raises NotFound, VaultFrozen,
        StateConflict (it is not replaced).
        """
        old = vault_to_spend(db, access, request.vault_id)
        new = replacement_of(db, old)
        if new is None:
            raise StateConflict(f"The vault {old.name} is not replaced: ask for that first, replace-vault.")
        return CreatePsbtRequest(
            wallet_id=old.id,
            workspace_id=request.workspace_id,
            tx_type="send",
            recipients=[new.address],
            sweep=True,
            priority=request.priority,
            fee_rate=request.fee_rate,
            description=f"Moves what is left into {new.name}.",
        )
