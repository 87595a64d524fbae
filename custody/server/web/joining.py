"""How people and organisations join: invitations to a workspace, and requests for an organisation."""

from pydantic import TypeAdapter
from starlette.responses import Response

from custody.schemas.invitations import (
    AcceptInviteQuery,
    Invitation,
    InviteResponse,
    InviteToWorkspaceRequest,
    RevokeInviteRequest,
)
from custody.schemas.onboarding import (
    OnboardingQuery,
    OnboardingRequest,
    ReviewOnboardingRequest,
    SubmitOnboardingRequest,
)
from custody.schemas.queries import WorkspaceQuery
from custody.schemas.users import PermissionName
from custody.server.domain.errors import NotFound, PermissionDenied, StateConflict
from custody.server.web.endpoint import Auth, Call, Endpoint, Unit, page_response

INVITERS = frozenset({PermissionName.MANAGE_USERS})
REQUESTS = "/api/v1/onboarding-requests"
_REQUESTS = TypeAdapter(list[OnboardingRequest])


def invite_to_workspace(call: Call[InviteToWorkspaceRequest]) -> InviteResponse:
    """Offers an address a place in the workspace, for seven days, and mails it. The address needs no account yet.

    The role may carry nothing that the caller's own does not. One invitation of an address to a workspace is open at a
    time; revoke it to send another.
    """  # noqa: E501
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
    """  # noqa: E501
    return call.services.invitations.answer(
        call.db, call.caller, call.body.invite_id, accept=call.body.accept
    )


def revoke_invite(call: Call[RevokeInviteRequest]) -> Invitation:
    """Takes an offer back that was not answered yet."""
    return call.services.invitations.revoke(call.db, call.caller, call.access, call.body.invite_id)


def submit(call: Call[SubmitOnboardingRequest]) -> OnboardingRequest:
    """Asks for an organisation with a first workspace. The caller becomes its administrator once it is approved."""  # noqa: E501
    return call.services.onboarding.submit(call.db, call.caller, call.body)


def requests(call: Call[OnboardingQuery]) -> Response:
    """An operator's: everybody's requests. Anybody else's: their own. The oldest first, in pages."""
    page = call.services.onboarding.page(call.db, call.caller, call.body)
    return page_response(call, _REQUESTS, page, "uid")


def review(call: Call[ReviewOnboardingRequest]) -> OnboardingRequest:
    """An operator's decision, once. An approval founds the organisation and its workspace in the same step."""  # noqa: E501
    return call.services.onboarding.review(call.db, call.caller, call.ids["uid"], call.body)


ENDPOINTS = (
    Endpoint(
        "POST", "/api/v1/invite-to-workspace", invite_to_workspace, InviteResponse, INVITERS, Unit.WRITE,
        InviteToWorkspaceRequest, creates=True, workspace_field="workspace_context",
        needs_second_person=True, refuses=(StateConflict,),
    ),
    Endpoint(
        "GET", "/api/v1/get-pending-workspace-invites", get_pending_workspace_invites, list[Invitation],
        INVITERS, Unit.READ, WorkspaceQuery,
    ),
    Endpoint(
        "GET", "/api/v1/get-invites-pending", get_invites_pending, list[Invitation], Auth.SIGNED_IN,
        Unit.READ,
    ),
    Endpoint(
        "GET", "/api/v1/accept-invite", accept_invite, Invitation, Auth.SIGNED_IN, Unit.WRITE,
        AcceptInviteQuery, refuses=(NotFound, PermissionDenied, StateConflict),
    ),
    Endpoint(
        "POST", "/api/v1/revoke-invite", revoke_invite, Invitation, INVITERS, Unit.WRITE, RevokeInviteRequest,
        refuses=(StateConflict,),
    ),
    Endpoint(
        "POST", REQUESTS, submit, OnboardingRequest, Auth.SIGNED_IN, Unit.WRITE, SubmitOnboardingRequest,
        creates=True, refuses=(StateConflict,),
    ),
    Endpoint("GET", REQUESTS, requests, list[OnboardingRequest], Auth.SIGNED_IN, Unit.READ, OnboardingQuery),
    Endpoint(
        "POST", REQUESTS + "/{uid}/review", review, OnboardingRequest, Auth.SIGNED_IN, Unit.WRITE,
        ReviewOnboardingRequest, creates=True, refuses=(PermissionDenied, StateConflict),
    ),
)  # fmt: skip
