"""The signed-in caller of a request, and the caller's permissions in the workspace."""

from dataclasses import dataclass

from custody.schemas.users import PermissionName


@dataclass(frozen=True)
class Caller:
    """A signed-in person. ``trace_id`` ties log, error and audit entry of one request together."""

    user_id: int
    session_id: int
    name: str
    trace_id: str


@dataclass(frozen=True)
class WorkspaceAccess:
    """A caller's place in the workspace that the request names.

    ``network`` is mainnet or testnet, ``chain`` what stands behind it (mainnet, testnet4, signet or regtest).
    """

    workspace_id: int
    organisation_id: int
    network: str
    chain: str
    role_id: int
    permissions: frozenset[PermissionName]

    def holds_any(self, wanted: frozenset[PermissionName]) -> bool:
        return bool(self.permissions & wanted)
