"""Signing in and one's own account; onboarding, members, roles and invitations."""

from pydantic import SecretStr, TypeAdapter

from custody.client.flow import Core, Sent, Session, attempt, call, checked, read, refresh_token_of, row
from custody.exchange import Plan, Reply, method
from custody.schemas.auth import (
    ChangePasswordRequest,
    LoginRequest,
    LoginResponse,
    OtpValidateRequest,
    PasswordResetRequest,
    RegisterRequest,
    ResetPasswordRequest,
    RevokeSessionsRequest,
    RevokeSessionsResponse,
    SecondFactor,
    SessionRecord,
    TotpConfirmRequest,
    TotpConfirmResponse,
    TotpEnrolRequest,
    TotpEnrolResponse,
    TwoFactorRequest,
    TwoFactorResponse,
)
from custody.schemas.common import Done, Few, Many
from custody.schemas.invitations import (
    Invitation,
    InviteResponse,
    InviteToWorkspaceRequest,
    RevokeInviteRequest,
)
from custody.schemas.onboarding import (
    OnboardingRequest,
    OnboardingStatus,
    ReviewOnboardingRequest,
    SubmitOnboardingRequest,
)
from custody.schemas.users import (
    AddPermissionRequest,
    AddWorkspaceToUserRequest,
    AllocationResponse,
    ChangeUserRoleRequest,
    CreateRoleRequest,
    CreateWorkspaceRequest,
    DeleteRoleRequest,
    LeaveWorkspaceRequest,
    Member,
    RemovePermissionRequest,
    RemoveUserRequest,
    RoleDetails,
    SetDefaultWorkspaceRequest,
    UpdateRoleRequest,
    UpdateUserInfoRequest,
    UpdateWorkspaceRequest,
    User,
    WorkspaceEntry,
    WorkspaceInfo,
)

_PATH = "/api/v1/onboarding-requests"
_REQUESTS = TypeAdapter(Few[OnboardingRequest])
_MEMBERS = TypeAdapter(Many[Member])
_ROLES = TypeAdapter(Few[RoleDetails])
_INVITATIONS = TypeAdapter(Few[Invitation])


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
        """One page, the oldest first; go on ``after`` the last ``uid``."""
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


class RoleCalls:
    @row("GET", "/api/v1/get-roles-and-perms-detailed", _ROLES, repeatable=True)
    @staticmethod
    def roles(workspace_id: int) -> Sent:
        return Sent(query={"workspace_id": workspace_id})

    @row("POST", "/api/v1/create-role", RoleDetails)
    @staticmethod
    def create_role(body: CreateRoleRequest, *, idempotency_key: str | None = None) -> Sent:
        return Sent(body, key=idempotency_key)

    @row("POST", "/api/v1/update-role", RoleDetails)
    @staticmethod
    def update_role(body: UpdateRoleRequest) -> Sent:
        return Sent(body)

    @row("POST", "/api/v1/delete-role", Done)
    @staticmethod
    def delete_role(body: DeleteRoleRequest) -> Sent:
        return Sent(body)

    @row("POST", "/api/v1/add-perm-to-role", RoleDetails)
    @staticmethod
    def add_permission_to_role(body: AddPermissionRequest) -> Sent:
        return Sent(body)

    @row("POST", "/api/v1/remove-perm-from-role", RoleDetails)
    @staticmethod
    def remove_permission_from_role(body: RemovePermissionRequest) -> Sent:
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


_SESSIONS = TypeAdapter(Few[SessionRecord])


class SignInCalls:
    @row("POST", "/auth/register", Done, signed_in=False)
    @staticmethod
    def register(request: RegisterRequest) -> Sent:
        return Sent(request)

    @method
    @staticmethod
    def login(
        core: Core, email: str, password: str, *, device: str | None = None, location: str | None = None
    ) -> Plan[LoginResponse]:
        """``POST /auth/login``. Where ``requires_2fa``, go on with ``otp_validate``."""
        body = LoginRequest(email=email, password=SecretStr(password), device=device, location=location)
        reply = yield from attempt(core, core.build("POST", "/auth/login", body), repeatable=False)
        return _signed_in(core, reply)

    @method
    @staticmethod
    def otp_validate(core: Core, token_2fa: str, otp: str) -> Plan[LoginResponse]:
        """``POST /auth/otp-validate``. Not repeated: each try counts."""
        body = OtpValidateRequest(token_2fa=token_2fa, otp=otp)
        reply = yield from attempt(core, core.build("POST", "/auth/otp-validate", body), repeatable=False)
        return _signed_in(core, reply)

    @method
    @staticmethod
    def logout(core: Core) -> Plan[Done]:
        """``POST /auth/logout``: the session is forgotten here whatever the platform answers."""
        request = core.build("POST", "/auth/logout")
        try:
            return read((yield from call(core, request, repeatable=True)), Done)
        finally:
            core.set_session(None)


class SignInAccountCalls:
    @row("POST", "/auth/request-password-reset", Done, signed_in=False)
    @staticmethod
    def request_password_reset(email: str) -> Sent:
        """A token comes by mail, where the address has an account."""
        return Sent(PasswordResetRequest(email=email))

    @row("POST", "/auth/reset-password", Done, signed_in=False)
    @staticmethod
    def reset_password(token: str, new_password: str) -> Sent:
        """With the mailed token. Every session ends; sign in again."""
        return Sent(ResetPasswordRequest(token=token, new_password=SecretStr(new_password)))

    @row("POST", "/auth/change-password", Done)
    @staticmethod
    def change_password(password: str, new_password: str) -> Sent:
        """Every other session ends."""
        return Sent(ChangePasswordRequest(password=SecretStr(password), new_password=SecretStr(new_password)))

    @row("POST", "/auth/two-factor", TwoFactorResponse)
    @staticmethod
    def two_factor(*, password: str, enabled: bool | None = None, method: SecondFactor | None = None) -> Sent:
        """With either ``enabled`` or ``method``."""
        return Sent(TwoFactorRequest(enabled=enabled, method=method, password=SecretStr(password)))

    @row("POST", "/auth/totp/enrol", TotpEnrolResponse)
    @staticmethod
    def totp_enrol(password: str) -> Sent:
        """The secret for an authenticator, shown once."""
        return Sent(TotpEnrolRequest(password=SecretStr(password)))

    @row("POST", "/auth/totp/confirm", TotpConfirmResponse)
    @staticmethod
    def totp_confirm(code: str) -> Sent:
        """The recovery codes, shown once. Not repeated: they would be others."""
        return Sent(TotpConfirmRequest(code=code))

    @row("GET", "/auth/sessions", _SESSIONS, repeatable=True)
    @staticmethod
    def sessions() -> Sent:
        """One's own, the newest first."""
        return Sent()

    @row("POST", "/auth/sessions/revoke", RevokeSessionsResponse)
    @staticmethod
    def revoke_session(session_id: str) -> Sent:
        """Not repeated: the second answer would be that there is none."""
        return Sent(RevokeSessionsRequest(session_id=session_id))

    @row("POST", "/auth/sessions/revoke", RevokeSessionsResponse, repeatable=True)
    @staticmethod
    def revoke_other_sessions() -> Sent:
        """All of one's own but this one."""
        return Sent(RevokeSessionsRequest(all_others=True))


def _signed_in(core: Core, reply: Reply) -> LoginResponse:
    answer = read(checked(reply), LoginResponse)
    if not answer.requires_2fa:
        refresh_token = refresh_token_of(core, reply)
        core.set_session(
            Session(answer.sid, answer.token, refresh_token, core.now() + (answer.expires_in or 0))
        )
    return answer
