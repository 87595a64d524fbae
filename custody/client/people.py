"""Onboarding, members, roles and invitations."""

from pydantic import TypeAdapter

from custody.client.flow import Sent, row
from custody.schemas.common import LATER, Done, Few, Many
from custody.schemas.invitations import (
    Invitation,
    InviteResponse,
    InviteToWorkspaceRequest,
    OnboardingRequest,
    OnboardingStatus,
    ReviewOnboardingRequest,
    RevokeInviteRequest,
    SubmitOnboardingRequest,
)
from custody.schemas.users import (
    AddWorkspaceToUserRequest,
    AllocationResponse,
    ChangeUserRoleRequest,
    CreateWorkspaceRequest,
    LeaveWorkspaceRequest,
    MailSettings,
    Member,
    RemoveUserRequest,
    SetDefaultWorkspaceRequest,
    UpdateMailSettingsRequest,
    UpdateUserInfoRequest,
    UpdateWorkspaceRequest,
    User,
    WorkspaceEntry,
    WorkspaceInfo,
)

_PATH = "/api/v1/onboarding-requests"
_REQUESTS = TypeAdapter(Few[OnboardingRequest], config=LATER)
_MEMBERS = TypeAdapter(Many[Member], config=LATER)
_INVITATIONS = TypeAdapter(Few[Invitation], config=LATER)


class OnboardingCalls:
    @row("POST", _PATH, OnboardingRequest)
    @staticmethod
    def submit_onboarding_request(
        body: SubmitOnboardingRequest, *, idempotency_key: str | None = None
    ) -> Sent:
        return Sent(body, key=idempotency_key)

    @row("GET", _PATH, _REQUESTS, repeatable=True)
    @staticmethod
    def onboarding_requests(
        *, status: OnboardingStatus | None = None, after: int | None = None, limit: int | None = None
    ) -> Sent:
        """One page, the oldest first; ``after`` takes the last ``uid``."""
        return Sent(query={"status": status, "after": after, "limit": limit})

    @row("POST", _PATH + "/{uid}/review", OnboardingRequest)
    @staticmethod
    def review_onboarding_request(
        uid: int, body: ReviewOnboardingRequest, *, idempotency_key: str | None = None
    ) -> Sent:
        return Sent(body, path={"uid": uid}, key=idempotency_key)


class PeopleCalls:
    @row("GET", "/api/v1/get-user-info", User, repeatable=True)
    @staticmethod
    def user_info() -> Sent:
        return Sent()

    @row("GET", "/api/v1/get-users-from-workspace", _MEMBERS, repeatable=True)
    @staticmethod
    def members(workspace_id: int) -> Sent:
        return Sent(query={"workspace_id": workspace_id})

    @row("POST", "/api/v1/add-workspace-to-user", AllocationResponse)
    @staticmethod
    def add_workspace_to_user(body: AddWorkspaceToUserRequest) -> Sent:
        return Sent(body)

    @row("POST", "/api/v1/change-user-role", Member)
    @staticmethod
    def change_user_role(body: ChangeUserRoleRequest) -> Sent:
        return Sent(body)

    @row("POST", "/api/v1/remove-user-from-workspace", Done)
    @staticmethod
    def remove_user_from_workspace(body: RemoveUserRequest) -> Sent:
        return Sent(body)

    @row("POST", "/api/v1/leave-workspace", Done)
    @staticmethod
    def leave_workspace(workspace_id: int, *, force: bool = False) -> Sent:
        return Sent(LeaveWorkspaceRequest(workspace_id=workspace_id, force=force))

    @row("POST", "/api/v1/update-user-info", User)
    @staticmethod
    def update_user_info(body: UpdateUserInfoRequest) -> Sent:
        return Sent(body)

    @row("POST", "/api/v1/set-default-workspace", User)
    @staticmethod
    def set_default_workspace(workspace_id: int) -> Sent:
        return Sent(SetDefaultWorkspaceRequest(workspace_id=workspace_id))

    @row("POST", "/api/v1/create-workspace", WorkspaceEntry)
    @staticmethod
    def create_workspace(body: CreateWorkspaceRequest, *, idempotency_key: str | None = None) -> Sent:
        return Sent(body, key=idempotency_key)

    @row("POST", "/api/v1/update-workspace", WorkspaceInfo)
    @staticmethod
    def update_workspace(body: UpdateWorkspaceRequest) -> Sent:
        return Sent(body)


class MailCalls:
    @row("GET", "/api/v1/mail-settings", MailSettings, repeatable=True)
    @staticmethod
    def mail_settings() -> Sent:
        return Sent()

    @row("POST", "/api/v1/update-mail-settings", MailSettings, repeatable=True)
    @staticmethod
    def update_mail_settings(body: UpdateMailSettingsRequest) -> Sent:
        return Sent(body)


class InvitationCalls:
    @row("POST", "/api/v1/invite-to-workspace", InviteResponse)
    @staticmethod
    def invite_to_workspace(body: InviteToWorkspaceRequest, *, idempotency_key: str | None = None) -> Sent:
        return Sent(body, key=idempotency_key)

    @row("GET", "/api/v1/get-pending-workspace-invites", _INVITATIONS, repeatable=True)
    @staticmethod
    def workspace_invitations(workspace_id: int) -> Sent:
        return Sent(query={"workspace_id": workspace_id})

    @row("GET", "/api/v1/get-invites-pending", _INVITATIONS, repeatable=True)
    @staticmethod
    def own_invitations() -> Sent:
        return Sent()

    @row("GET", "/api/v1/accept-invite", Invitation)
    @staticmethod
    def accept_invite(invite_id: str) -> Sent:
        """Not repeated: it is answered once."""
        return Sent(query={"invite_id": invite_id, "accept": "true"})

    @row("GET", "/api/v1/accept-invite", Invitation)
    @staticmethod
    def decline_invite(invite_id: str) -> Sent:
        """Not repeated: it is answered once."""
        return Sent(query={"invite_id": invite_id, "accept": "false"})

    @row("POST", "/api/v1/revoke-invite", Invitation)
    @staticmethod
    def revoke_invite(body: RevokeInviteRequest) -> Sent:
        return Sent(body)
