"""Reading, checking and replacing the limits of a workspace's roles and vaults."""

from dataclasses import replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas import limits as wire
from custody.server.domain.audit import Category
from custody.server.domain.credentials import OPERATOR, Caller, WorkspaceAccess
from custody.server.domain.errors import Invalid, NotFound, PolicyUnavailable
from custody.server.domain.limits import Cycle, SpendingPolicy, policy_words
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.limits.limits import Limits, PolicyStore
from custody.server.service.stored_vaults import place_of, vault_in
from custody.server.store.models import Membership, Role, Vault
from multisig import InvalidAmount, Sats, parse_btc


class LimitAdministration:
    """Raises PolicyUnavailable where policies cannot be read or replaced; ``of_vault`` returns it instead."""

    def __init__(self, clock: Clock, audit: AuditLog, policies: PolicyStore, limits: Limits) -> None:
        self._clock = clock
        self._audit = audit
        self._policies = policies
        self._limits = limits

    # --- roles ----------------------------------------------------------------------------------------------

    def of_caller(self, db: Session, caller: Caller, access: WorkspaceAccess) -> wire.MyLimits:
        return self._limits.of_caller(db, caller, access)

    def of_role(self, db: Session, access: WorkspaceAccess, role_id: int) -> wire.RoleLimit:
        """Raises NotFound."""
        return self._limits.of_role(db, access.workspace_id, _role(db, access, role_id).id)

    def fits_role(self, db: Session, access: WorkspaceAccess, query: wire.CheckRoleQuery) -> bool:
        """Raises NotFound (role, member), and Invalid where the member holds another role."""
        role, amount = _role(db, access, query.role_id), _amount("amount_to_check", query.amount_to_check)
        member = db.scalars(
            select(Membership).where(
                Membership.workspace_id == access.workspace_id, Membership.user_id == query.uuid
            )
        ).one_or_none()
        if member is None:
            raise NotFound("There is no such member in this workspace.")
        if member.role_id != role.id:
            raise Invalid.at("/role_id", f"User {query.uuid} holds another role in this workspace.")
        return self._limits.fits_role(db, access.workspace_id, role.id, query.uuid, amount)

    def replace_of_role(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.UpdateRolePoliciesRequest
    ) -> wire.RoleLimit:
        """Applies from the next movement of each member with the role (P22). Raises NotFound, Invalid."""
        role = _role(db, access, request.role_id)
        limit = _amount("new_transaction_limit", request.new_transaction_limit)
        before = self._policies.of_role(db, role.id)
        after = SpendingPolicy(limit, Cycle(request.cycle_period, request.cycle_day))
        self._policies.replace_of_role(db, role.id, after)
        role.updated_at = self._clock()
        db.flush()
        shown = self._limits.of_role(db, access.workspace_id, role.id)
        change = f"role {role.id}: {policy_words(before)}; now {policy_words(after)}"
        self._audit.record(
            db,
            caller,
            Category.PEOPLE,
            "ROLE_POLICY_REPLACED",
            change,
            access=access,
            told={"role_id": role.id},
        )
        return shown

    # --- vaults ---------------------------------------------------------------------------------------------

    def of_vault(
        self, db: Session, access: WorkspaceAccess, vault_id: str
    ) -> wire.VaultLimits | wire.LimitError:
        """Raises NotFound."""
        vault = vault_in(db, access, vault_id)
        try:
            return self._limits.of_vaults(db, [vault])[vault.id]
        except PolicyUnavailable as error:
            return wire.LimitError(limit_error=error.detail)

    def fits_vault(self, db: Session, access: WorkspaceAccess, query: wire.CheckVaultQuery) -> bool:
        """Raises NotFound, Invalid."""
        vault = vault_in(db, access, query.vault_id)
        return self._limits.fits_vault(db, vault, _amount("amount_to_check", query.amount_to_check))

    def replace_of_vault(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.UpdateVaultRequest
    ) -> wire.VaultLimits:
        """Applies from the next movement. Raises NotFound, Invalid."""
        vault = vault_in(db, access, request.vault_id)
        limit = _amount("transaction_limit", request.transaction_limit)
        before = self._policies.of_vaults(db, [vault.id])[vault.id]
        per_cycle = before.is_per_cycle if request.per_cycle is None else request.per_cycle
        after = SpendingPolicy(limit, Cycle(request.cycle_period, request.cycle_day), per_cycle)
        return self._replace_of_vault(db, caller, access, vault, before, after)

    def bound_cycle(self, db: Session, vault_id: str, *, is_per_cycle: bool) -> wire.VaultLimits:
        """For the operator: whether the vault's limit bounds the sum of a cycle, or each movement. Raises
        NotFound.
        """
        vault = db.get(Vault, vault_id)
        if vault is None:
            raise NotFound(f"There is no vault {vault_id}.")
        before = self._policies.of_vaults(db, [vault.id])[vault.id]
        after = replace(before, is_per_cycle=is_per_cycle)
        access = place_of(db, vault.workspace_id)
        return self._replace_of_vault(db, OPERATOR, access, vault, before, after)

    def _replace_of_vault(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        vault: Vault,
        before: SpendingPolicy,
        after: SpendingPolicy,
    ) -> wire.VaultLimits:
        self._policies.replace_of_vault(db, vault.id, after)
        vault.updated_at = self._clock()
        db.flush()
        shown = self._limits.of_vaults(db, [vault])[vault.id]
        change = f"vault {vault.id}: {policy_words(before)}; now {policy_words(after)}"
        self._audit.record(
            db,
            caller,
            Category.VAULTS,
            "VAULT_POLICY_REPLACED",
            change,
            access=access,
            told={"vault_id": vault.id},
        )
        return shown


def _role(db: Session, access: WorkspaceAccess, role_id: int) -> Role:
    role = db.get(Role, role_id)
    if role is None or role.workspace_id != access.workspace_id:
        raise NotFound("There is no such role in this workspace.")
    return role


def _amount(field: str, text: str) -> Sats:
    try:
        return parse_btc(text)
    except InvalidAmount as error:
        raise Invalid.at(f"/{field}", str(error)) from error
