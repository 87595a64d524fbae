"""A vault's controls: bound to the address book, not approved by makers, frozen.

One member with PAYMENT_APPROVE freezes at once; it takes two to unfreeze. The platform accepts no proposal
and no approval of a frozen vault, and broadcasts nothing of it; a transaction on the network cannot be
stopped.
"""

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas import vaults as wire
from custody.schemas.proposals import ProposalStatus as Status
from custody.server.domain.audit import Category
from custody.server.domain.credentials import Caller, WorkspaceAccess
from custody.server.domain.errors import StateConflict
from custody.server.domain.lifecycle import TO_BROADCAST
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.jobs.outbox import enqueue
from custody.server.service.keys.quorums import approver
from custody.server.service.mail.waiting import tell_waiting
from custody.server.service.proposals.records import names_of
from custody.server.service.proposals.signing import BROADCAST
from custody.server.service.requests.changes import Changes
from custody.server.service.stored_vaults import vault_in
from custody.server.store.models import Proposal, Vault, VaultSigner

# How long the first member's request waits for the second.
UNFREEZE_LIFETIME: Final = timedelta(hours=24)
MAX_SHOWN: Final = 100


class VaultControls:
    def __init__(self, clock: Clock, audit: AuditLog, changes: Changes) -> None:
        self._clock = clock
        self._audit = audit
        self._changes = changes

    def of_vault(self, db: Session, access: WorkspaceAccess, vault_id: str) -> wire.VaultControls:
        """Raises NotFound."""
        return self._shown(db, vault_in(db, access, vault_id))

    def replace(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.UpdateVaultControlsRequest
    ) -> wire.VaultControls:
        """Applies to new proposals and to further approvals of pending ones. Raises NotFound."""
        vault = vault_in(db, access, request.vault_id)
        vault.only_address_book = request.only_address_book
        vault.maker_may_approve = request.maker_may_approve
        where = "the address book alone" if vault.only_address_book else "any address"
        who = "makers may approve" if vault.maker_may_approve else "makers may not approve"
        self._record(db, caller, access, vault, "VAULT_CONTROLS_REPLACED", f"pays {where}, {who}")
        return self._shown(db, vault)

    def freeze(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.FreezeVaultRequest
    ) -> wire.VaultControls:
        """Freezes at once; on a frozen vault it cancels a request to unfreeze. Raises NotFound."""
        vault = vault_in(db, access, request.vault_id)
        if vault.frozen_at is not None and vault.unfreeze_asked_by is None:
            return self._shown(db, vault)
        action = "VAULT_UNFREEZE_TAKEN_BACK"
        if vault.frozen_at is None:
            action = "VAULT_FROZEN"
            vault.frozen_at, vault.frozen_by = self._clock(), caller.user_id
            vault.freeze_reason = request.reason
        vault.unfreeze_asked_at = vault.unfreeze_asked_by = None
        said = "no reason given" if request.reason is None else f"reason: {request.reason}"
        self._record(db, caller, access, vault, action, said)
        return self._shown(db, vault)

    def unfreeze(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.UnfreezeVaultRequest
    ) -> wire.VaultControls:
        """The first member asks; another one unfreezes within a day. Raises NotFound, StateConflict."""
        vault = vault_in(db, access, request.vault_id)
        if vault.frozen_at is None:
            raise StateConflict("The vault is not frozen.")
        asked_by = self._asked_by(db, vault)
        if asked_by is None:
            vault.unfreeze_asked_at, vault.unfreeze_asked_by = self._clock(), caller.user_id
            self._record(db, caller, access, vault, "VAULT_UNFREEZE_ASKED", "another member has to agree")
        elif asked_by != caller.user_id:
            self._unfreeze(db, vault)
            self._record(db, caller, access, vault, "VAULT_UNFROZEN", f"asked by user {asked_by}")
        return self._shown(db, vault)

    def _asked_by(self, db: Session, vault: Vault) -> int | None:
        """The member who asked to unfreeze, within the last day and still permitted; else None."""
        if vault.unfreeze_asked_at is None or self._clock() >= vault.unfreeze_asked_at + UNFREEZE_LIFETIME:
            return None
        return db.scalars(approver(vault.workspace_id, vault.unfreeze_asked_by)).first()

    def _unfreeze(self, db: Session, vault: Vault) -> None:
        vault.frozen_at = vault.frozen_by = vault.freeze_reason = None
        vault.unfreeze_asked_at = vault.unfreeze_asked_by = None
        replaced = db.scalars(select(Vault).where(Vault.replaced_by_id == vault.id))
        for one in (vault, *replaced):
            for proposal_id in _ids(db, one, *TO_BROADCAST):
                enqueue(db, BROADCAST, proposal_id, self._clock())
        # No mails were sent while nothing could be signed.
        signers = select(VaultSigner.user_id).where(VaultSigner.vault_id == vault.id)
        tell_waiting(db, signers, self._clock())

    def _record(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        vault: Vault,
        action: str,
        said: str,
    ) -> None:
        vault.updated_at = self._clock()
        db.flush()
        what, told = f"vault {vault.id}, {said}", {"vault_id": vault.id}
        self._audit.record(db, caller, Category.VAULTS, action, what, access=access, told=told)
        self._changes.moved(db, vault.workspace_id)

    def _shown(self, db: Session, vault: Vault) -> wire.VaultControls:
        asked_by = self._asked_by(db, vault)
        names = names_of(db, (each for each in (vault.frozen_by, asked_by) if each is not None))
        return wire.VaultControls(
            vault_id=vault.id,
            only_address_book=vault.only_address_book,
            maker_may_approve=vault.maker_may_approve,
            is_frozen=vault.frozen_at is not None,
            frozen_at=vault.frozen_at,
            frozen_by=_text(vault.frozen_by),
            frozen_by_name=None if vault.frozen_by is None else names.get(vault.frozen_by),
            freeze_reason=vault.freeze_reason,
            unfreeze_asked_at=None if asked_by is None else vault.unfreeze_asked_at,
            unfreeze_asked_by=_text(asked_by),
            unfreeze_asked_by_name=None if asked_by is None else names.get(asked_by),
            waiting_psbt_ids=_ids(db, vault, *TO_BROADCAST),
            on_network_psbt_ids=_ids(db, vault, Status.BROADCASTING),
        )


def _ids(db: Session, vault: Vault, *statuses: Status) -> list[str]:
    """The vault's own movements with these statuses, the oldest first, without forwards."""
    found: list[tuple[datetime, str]] = []
    # One query for each status, which an index serves in order.
    for status in statuses:
        query = select(Proposal.created_at, Proposal.id).where(
            Proposal.workspace_id == vault.workspace_id,
            Proposal.status == status.value,
            Proposal.vault_id == vault.id,
            Proposal.profile_key_id.is_(None),
        )
        rows = db.execute(query.order_by(Proposal.created_at, Proposal.id).limit(MAX_SHOWN))
        found += [(created_at, proposal_id) for created_at, proposal_id in rows]
    return [proposal_id for _, proposal_id in sorted(found)[:MAX_SHOWN]]


def _text(user_id: int | None) -> str | None:
    return None if user_id is None else str(user_id)
