"""The caller's own record, members, workspaces and roles; invitations, and requests for an organisation. The
roles' spending limits are in ``web.vaults``.
"""

from pydantic import TypeAdapter
from starlette.responses import Response

from custody.schemas import roles
from custody.schemas.common import Done, Listed
from custody.schemas.invitations import (
    AcceptInviteQuery,
    Invitation,
    InviteResponse,
    InviteToWorkspaceRequest,
    OnboardingQuery,
    OnboardingRequest,
    ReviewOnboardingRequest,
    RevokeInviteRequest,
    SubmitOnboardingRequest,
)
from custody.schemas.queries import WorkspaceQuery
from custody.schemas.users import (
    AddWorkspaceToUserRequest,
    AllocationResponse,
    ChangeUserRoleRequest,
    CreateWorkspaceRequest,
    LeaveWorkspaceRequest,
    MailSettings,
    Member,
    PermissionName,
    RemoveUserRequest,
    SetDefaultWorkspaceRequest,
    UpdateMailSettingsRequest,
    UpdateUserInfoRequest,
    UpdateWorkspaceRequest,
    User,
    WorkspaceEntry,
    WorkspaceInfo,
)
from custody.server.domain.errors import LastAdmin, NotFound, PermissionDenied, StateConflict, VaultsLeftShort
from custody.server.web.declared import rows_of
from custody.server.web.endpoint import Auth, Call, Endpoint, Unit, page_response

USER_MANAGERS = frozenset({PermissionName.MANAGE_USERS})
ANY_MEMBER: frozenset[PermissionName] = frozenset()
WORKSPACE_MANAGERS = frozenset({PermissionName.MANAGE_WORKSPACE})


def get_user_info(call: Call[None]) -> User:
    """The caller's own record: organisations, workspaces, and the role in each."""
    return call.services.people.user_info(call.db, call.caller.user_id, call.caller.bound_to)


def update_user_info(call: Call[UpdateUserInfoRequest]) -> User:
    """Changes the caller's own name and telephone number. What is left out stays; an empty text takes it away."""  # noqa: E501
    return call.services.people.update_own(call.db, call.caller, call.body)


def mail_settings(call: Call[None]) -> MailSettings:
    """Whether the caller is mailed when something waits for them, and whether with amounts and addresses."""
    return call.services.people.mail_settings(call.db, call.caller)


def update_mail_settings(call: Call[UpdateMailSettingsRequest]) -> MailSettings:
    """Changes the caller's own."""
    return call.services.people.update_mail_settings(call.db, call.caller, call.body)


def set_default_workspace(call: Call[SetDefaultWorkspaceRequest]) -> User:
    """Makes one of the caller's workspaces the one that is shown first."""
    return call.services.people.set_default(call.db, call.caller, call.access)


def get_users_from_workspace(call: Call[WorkspaceQuery]) -> Listed[Member]:
    """The members of a workspace, with their role and whether they can sign."""
    return call.services.members.listed(call.db, call.access)


def add_workspace_to_user(call: Call[AddWorkspaceToUserRequest]) -> AllocationResponse:
    """Adds a user of the organisation to a workspace, without an invitation, in a role that carries no more than yours."""  # noqa: E501
    allocation_id = call.services.members.add(call.db, call.caller, call.access, call.body)
    return AllocationResponse(allocation_id=allocation_id)


def change_user_role(call: Call[ChangeUserRoleRequest]) -> Member:
    """Gives a member another role. Neither the old one nor the new one may carry what yours does not."""
    return call.services.members.change_role(call.db, call.caller, call.access, call.body)


def remove_user_from_workspace(call: Call[RemoveUserRequest]) -> Done:
    """Takes a member's place away, at once. Refused where a vault would keep too few signers, unless forced."""  # noqa: E501
    call.services.members.remove(call.db, call.caller, call.access, call.body)
    return Done()


def leave_workspace(call: Call[LeaveWorkspaceRequest]) -> Done:
    """Gives up one's own place. The last administrator stays."""
    call.services.members.leave(call.db, call.caller, call.access, force=call.body.force)
    call.services.second_person.require_two(call.db, call.access.organisation_id)
    return Done()


def create_workspace(call: Call[CreateWorkspaceRequest]) -> WorkspaceEntry:
    """Another workspace of the organisation, with its first roles. The caller is its administrator."""
    return call.services.workspaces.create(call.db, call.caller, call.access, call.body)


def update_workspace(call: Call[UpdateWorkspaceRequest]) -> WorkspaceInfo:
    """Changes a workspace's name and description. Its network is fixed."""
    return call.services.workspaces.update(call.db, call.caller, call.access, call.body)


ENDPOINTS = (
    Endpoint("GET", "/api/v1/get-user-info", get_user_info, User, Auth.SIGNED_IN, Unit.READ),
    Endpoint(
        "POST", "/api/v1/update-user-info", update_user_info, User, Auth.SIGNED_IN, Unit.WRITE,
        UpdateUserInfoRequest,
    ),
    Endpoint(
        "POST", "/api/v1/set-default-workspace", set_default_workspace, User, ANY_MEMBER, Unit.WRITE,
        SetDefaultWorkspaceRequest,
    ),
    Endpoint(
        "GET", "/api/v1/get-users-from-workspace", get_users_from_workspace, Listed[Member], USER_MANAGERS,
        Unit.READ, WorkspaceQuery,
    ),
    Endpoint(
        "POST", "/api/v1/add-workspace-to-user", add_workspace_to_user, AllocationResponse,
        frozenset({PermissionName.MANAGE_WORKSPACE}), Unit.WRITE, AddWorkspaceToUserRequest, creates=True,
        needs_second_person=True, refuses=(StateConflict,),
    ),
    Endpoint(
        "POST", "/api/v1/change-user-role", change_user_role, Member, USER_MANAGERS, Unit.WRITE,
        ChangeUserRoleRequest, needs_second_person=True, refuses=(LastAdmin, VaultsLeftShort),
    ),
    Endpoint(
        "POST", "/api/v1/remove-user-from-workspace", remove_user_from_workspace, Done, USER_MANAGERS,
        Unit.WRITE, RemoveUserRequest, needs_second_person=True, refuses=(LastAdmin, VaultsLeftShort),
    ),
    Endpoint(
        "POST", "/api/v1/leave-workspace", leave_workspace, Done, ANY_MEMBER, Unit.WRITE,
        LeaveWorkspaceRequest, refuses=(LastAdmin, VaultsLeftShort),
    ),
    Endpoint(
        "POST", "/api/v1/create-workspace", create_workspace, WorkspaceEntry, WORKSPACE_MANAGERS, Unit.WRITE,
        CreateWorkspaceRequest, creates=True, needs_second_person=True, refuses=(StateConflict,),
    ),
    Endpoint(
        "POST", "/api/v1/update-workspace", update_workspace, WorkspaceInfo, WORKSPACE_MANAGERS, Unit.WRITE,
        UpdateWorkspaceRequest, refuses=(StateConflict,),
    ),
    *rows_of(roles),
    Endpoint("GET", "/api/v1/mail-settings", mail_settings, MailSettings, Auth.SIGNED_IN, Unit.READ),
    Endpoint(
        "POST", "/api/v1/update-mail-settings", update_mail_settings, MailSettings, Auth.SIGNED_IN,
        Unit.WRITE, UpdateMailSettingsRequest,
    ),
)  # fmt: skip


INVITERS = frozenset({PermissionName.MANAGE_USERS})
REQUESTS = "/api/v1/onboarding-requests"
_REQUESTS = TypeAdapter(Listed[OnboardingRequest])


def invite_to_workspace(call: Call[InviteToWorkspaceRequest]) -> InviteResponse:
    """Offers an address a place in the workspace, for seven days, and mails it. The address needs no account yet.

    The role may carry nothing that the caller's own does not. One invitation of an address to a workspace is open at a
    time; revoke it to send another.
    """  # noqa: E501
    invite_id = call.services.invitations.invite(call.db, call.caller, call.access, call.body)
    return InviteResponse(invite_id=invite_id)


def get_pending_workspace_invites(call: Call[WorkspaceQuery]) -> Listed[Invitation]:
    """The workspace's invitations that wait for an answer, the oldest first."""
    return call.services.invitations.pending_in(call.db, call.access)


def get_invites_pending(call: Call[None]) -> Listed[Invitation]:
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


JOINING = (
    Endpoint(
        "POST", "/api/v1/invite-to-workspace", invite_to_workspace, InviteResponse, INVITERS, Unit.WRITE,
        InviteToWorkspaceRequest, creates=True, workspace_field="workspace_context",
        needs_second_person=True, refuses=(StateConflict,),
    ),
    Endpoint(
        "GET", "/api/v1/get-pending-workspace-invites", get_pending_workspace_invites, Listed[Invitation],
        INVITERS, Unit.READ, WorkspaceQuery,
    ),
    Endpoint(
        "GET", "/api/v1/get-invites-pending", get_invites_pending, Listed[Invitation], Auth.SIGNED_IN,
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
    Endpoint(
        "GET", REQUESTS, requests, Listed[OnboardingRequest], Auth.SIGNED_IN, Unit.READ, OnboardingQuery,
    ),
    Endpoint(
        "POST", REQUESTS + "/{uid}/review", review, OnboardingRequest, Auth.SIGNED_IN, Unit.WRITE,
        ReviewOnboardingRequest, creates=True, refuses=(PermissionDenied, StateConflict),
    ),
)  # fmt: skip
