"""A policy store that a test can make unreachable."""

from custody.server.errors import PolicyUnavailable
from custody.server.limits.stored import Policies
from custody.server.rules.limits import SpendingPolicy
from custody.server.store.models import RoleRow, VaultRow

OUT_OF_REACH = "The policy store does not answer."


class RemotePolicies(Policies):
    """Answers as the platform's own store while it is reachable."""

    is_reachable = True

    def of(self, row: RoleRow | VaultRow) -> SpendingPolicy:
        if not self.is_reachable:
            raise PolicyUnavailable(OUT_OF_REACH)
        return super().of(row)
