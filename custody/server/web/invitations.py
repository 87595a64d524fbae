"""Invitations: the workspace's side and the invitee's."""

from custody.schemas.invitations import (
    AcceptInviteQuery,
    Invitation,
    InviteResponse,
    InviteToWorkspaceRequest,
    RevokeInviteRequest,
)
from custody.schemas.queries import WorkspaceQuery
from custody.schemas.users import PermissionName
from custody.server.domain.errors import NotFound, PermissionDenied, StateConflict
from custody.server.web.endpoint import Call, Door, Endpoint, Unit

INVITERS = frozenset({PermissionName.MANAGE_USERS})


def invite_to_workspace(call: Call[InviteToWorkspaceRequest]) -> InviteResponse:
    """Offers an address a place in the workspace, for seven days, and mails it. The address needs no account yet.

    The role may carry nothing that the caller's own does not. One invitation of an address to a workspace is open at a
    time; revoke it to send another.
    """
    invite_id = call.services.invitations.invite(call.db, call.caller, call.access, call.body)
    return InviteResponse(invite_id=invite_id)


def get_pending_workspace_invites(call: Call[WorkspaceQuery]) -> list[Invitation]:
    """The workspace's invitations that wait for an answer, the oldest first."""
    return call.services.invitations.pending_in(call.db, call.access)


def get_invites_pending(call: Call[None]) -> list[Invitation]:
    """The caller's own invitations that wait for an answer, the oldest first."""
    return call.services.invitations.pending_for(call.db, call.caller)


def accept_invite(call: Call[AcceptInviteQuery]) -> Invitation:
    """Accepts or declines the caller's own invitation, once and for good.

    It changes something although it is a GET, as the specification has it; a mail scanner that follows links carries no
    access token. The inviter must still be able to grant the role when it is accepted.
    """
    return call.services.invitations.answer(
        call.db, call.caller, call.body.invite_id, accept=call.body.accept
    )


def revoke_invite(call: Call[RevokeInviteRequest]) -> Invitation:
    """Takes an offer back that was not answered yet."""
    return call.services.invitations.revoke(call.db, call.caller, call.access, call.body.invite_id)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/v1/invite-to-workspace",
        invite_to_workspace,
        InviteResponse,
        INVITERS,
        Unit.WRITE,
        InviteToWorkspaceRequest,
        creates=True,
        workspace_field="workspace_context",
        refuses=(StateConflict,),
    ),
    Endpoint(
        "GET",
        "/api/v1/get-pending-workspace-invites",
        get_pending_workspace_invites,
        list[Invitation],
        INVITERS,
        Unit.READ,
        WorkspaceQuery,
    ),
    Endpoint(
        "GET",
        "/api/v1/get-invites-pending",
        get_invites_pending,
        list[Invitation],
        Door.SIGNED_IN,
        Unit.READ,
    ),
    Endpoint(
        "GET",
        "/api/v1/accept-invite",
        accept_invite,
        Invitation,
        Door.SIGNED_IN,
        Unit.WRITE,
        AcceptInviteQuery,
        refuses=(NotFound, PermissionDenied, StateConflict),
    ),
    Endpoint(
        "POST",
        "/api/v1/revoke-invite",
        revoke_invite,
        Invitation,
        INVITERS,
        Unit.WRITE,
        RevokeInviteRequest,
        refuses=(StateConflict,),
    ),
)
