"""Where spending policies are kept. An operator may keep them elsewhere, behind this interface, and out of
reach at times.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from custody.server.domain.limits import Cycle, CyclePeriod, SpendingPolicy
from custody.server.store.models import Role, Vault
from multisig import Sats


class PolicyStore(Protocol):
    """Every call raises PolicyUnavailable where the store cannot be reached; then nothing moves.

    It is called inside the transaction of the movement, which holds the one write lock: an implementation
    that talks to another machine answers within a second or gives up. A role or vault whose policy was never
    replaced has that of its row.
    """

    def of_role(self, db: Session, role_id: int) -> SpendingPolicy: ...

    def of_vaults(self, db: Session, vault_ids: Sequence[str]) -> Mapping[str, SpendingPolicy]:
        """The policies of all vaults named."""
        ...

    def of_movement(self, db: Session, role_id: int, vault_id: str) -> tuple[SpendingPolicy, SpendingPolicy]:
        """Of the role and of the vault."""
        ...

    def replace_of_role(self, db: Session, role_id: int, policy: SpendingPolicy) -> None: ...

    def replace_of_vault(self, db: Session, vault_id: str, policy: SpendingPolicy) -> None: ...


class StoredPolicies:
    """The platform's own: columns of the role and of the vault. A change counts from its commit on."""

    def of_role(self, db: Session, role_id: int) -> SpendingPolicy:
        return _policy(*db.execute(_OF_ROLE, {"role_id": role_id}).one())

    def of_vaults(self, db: Session, vault_ids: Sequence[str]) -> Mapping[str, SpendingPolicy]:
        vaults = db.execute(_OF_VAULTS, {"vault_ids": vault_ids})
        return {
            vault_id: _policy(limit, period, day, is_per_cycle)
            for vault_id, limit, period, day, is_per_cycle in vaults
        }

    def of_movement(self, db: Session, role_id: int, vault_id: str) -> tuple[SpendingPolicy, SpendingPolicy]:
        row = db.execute(_OF_MOVEMENT, {"role_id": role_id, "vault_id": vault_id}).one()
        return _policy(*row[:3]), _policy(*row[3:])

    def replace_of_role(self, db: Session, role_id: int, policy: SpendingPolicy) -> None:
        _replace(db.get_one(Role, role_id), policy)

    def replace_of_vault(self, db: Session, vault_id: str, policy: SpendingPolicy) -> None:
        vault = db.get_one(Vault, vault_id)
        _replace(vault, policy)
        vault.is_per_cycle = policy.is_per_cycle


_OF_ROLE = select(Role.limit_sats, Role.cycle_period, Role.cycle_day).where(Role.id == bindparam("role_id"))
_OF_VAULTS = select(
    Vault.id, Vault.limit_sats, Vault.cycle_period, Vault.cycle_day, Vault.is_per_cycle
).where(Vault.id.in_(bindparam("vault_ids", expanding=True)))
_OF_MOVEMENT = (
    select(
        Role.limit_sats,
        Role.cycle_period,
        Role.cycle_day,
        Vault.limit_sats,
        Vault.cycle_period,
        Vault.cycle_day,
        Vault.is_per_cycle,
    )
    .join_from(Role, Vault, Vault.id == bindparam("vault_id"))
    .where(Role.id == bindparam("role_id"))
)


def _policy(limit: int, period: str, day: int, is_per_cycle: bool = True) -> SpendingPolicy:
    return SpendingPolicy(Sats(limit), _cycle(period, day), is_per_cycle)


def _cycle(period: str, day: int) -> Cycle:
    return Cycle(cast("CyclePeriod", period), day)


def _replace(row: Role | Vault, policy: SpendingPolicy) -> None:
    row.limit_sats = policy.limit
    row.cycle_period, row.cycle_day = policy.cycle.period, policy.cycle.day
