"""Invitations."""

from pydantic import TypeAdapter

from custody.client.flow import Core, Plan, call, read
from custody.client.method import idempotency, method
from custody.schemas.common import Few
from custody.schemas.invitations import (
    Invitation,
    InviteResponse,
    InviteToWorkspaceRequest,
    RevokeInviteRequest,
)

_INVITATIONS = TypeAdapter(Few[Invitation])


class InvitationCalls:
    @method
    @staticmethod
    def invite_to_workspace(
        core: Core, body: InviteToWorkspaceRequest, *, idempotency_key: str | None = None
    ) -> Plan[InviteResponse]:
        """``POST /api/v1/invite-to-workspace``."""
        request = core.build(
            "POST", "/api/v1/invite-to-workspace", body, headers=idempotency(idempotency_key)
        )
        return read((yield from call(core, request, repeatable=idempotency_key is not None)), InviteResponse)

    @method
    @staticmethod
    def workspace_invitations(core: Core, workspace_id: int) -> Plan[list[Invitation]]:
        """``GET /api/v1/get-pending-workspace-invites``."""
        request = core.build(
            "GET", "/api/v1/get-pending-workspace-invites", query={"workspace_id": workspace_id}
        )
        return read((yield from call(core, request, repeatable=True)), _INVITATIONS)

    @method
    @staticmethod
    def own_invitations(core: Core) -> Plan[list[Invitation]]:
        """``GET /api/v1/get-invites-pending``."""
        return read(
            (yield from call(core, core.build("GET", "/api/v1/get-invites-pending"), repeatable=True)),
            _INVITATIONS,
        )

    @method
    @staticmethod
    def accept_invite(core: Core, invite_id: str) -> Plan[Invitation]:
        """``GET /api/v1/accept-invite?accept=true``. Not repeated: it is answered once."""
        return (yield from _answer(core, invite_id, "true"))

    @method
    @staticmethod
    def decline_invite(core: Core, invite_id: str) -> Plan[Invitation]:
        """``GET /api/v1/accept-invite?accept=false``. Not repeated: it is answered once."""
        return (yield from _answer(core, invite_id, "false"))

    @method
    @staticmethod
    def revoke_invite(core: Core, body: RevokeInviteRequest) -> Plan[Invitation]:
        """``POST /api/v1/revoke-invite``."""
        request = core.build("POST", "/api/v1/revoke-invite", body)
        return read((yield from call(core, request, repeatable=False)), Invitation)


def _answer(core: Core, invite_id: str, accept: str) -> Plan[Invitation]:
    query = {"invite_id": invite_id, "accept": accept}
    request = core.build("GET", "/api/v1/accept-invite", query=query)
    return read((yield from call(core, request, repeatable=False)), Invitation)
