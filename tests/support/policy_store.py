"""A policy store that a test can make unreachable."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy.orm import Session

from custody.server.errors import PolicyUnavailable
from custody.server.limits.limits import StoredPolicies
from custody.server.rules.limits import SpendingPolicy

OUT_OF_REACH = "The policy store does not answer."


@dataclass
class RemotePolicies:
    """Answers as the platform's own store while it is reachable."""

    is_reachable: bool = True
    inner: StoredPolicies = field(default_factory=StoredPolicies)

    def of_role(self, db: Session, role_id: int) -> SpendingPolicy:
        return self._reach().of_role(db, role_id)

    def of_roles(self, db: Session, role_ids: Sequence[int]) -> Mapping[int, SpendingPolicy]:
        return self._reach().of_roles(db, role_ids)

    def of_movement(self, db: Session, role_id: int, vault_id: str) -> tuple[SpendingPolicy, SpendingPolicy]:
        return self._reach().of_movement(db, role_id, vault_id)

    def of_vaults(self, db: Session, vault_ids: Sequence[str]) -> Mapping[str, SpendingPolicy]:
        return self._reach().of_vaults(db, vault_ids)

    def replace_of_role(self, db: Session, role_id: int, policy: SpendingPolicy) -> None:
        self._reach().replace_of_role(db, role_id, policy)

    def replace_of_vault(self, db: Session, vault_id: str, policy: SpendingPolicy) -> None:
        self._reach().replace_of_vault(db, vault_id, policy)

    def _reach(self) -> StoredPolicies:
        if not self.is_reachable:
            raise PolicyUnavailable(OUT_OF_REACH)
        return self.inner
