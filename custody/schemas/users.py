"""People, organisations and workspaces, as ``GET /api/v1/get-user-info`` shows them; what a person changes of
their own record and is mailed; an organisation's other workspaces, and their names. And the members of a
workspace: invited by a mail, or added without; given another role, removed; and leaving it oneself.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field, StrictBool, StrictInt, StringConstraints

from custody.common.text import require_seen
from custody.schemas.call import (
    ANY_MEMBER,
    USER_MANAGERS,
    WORKSPACE_MANAGERS,
    Auth,
    Call,
    PermissionName,
    Way,
    few,
    many,
)
from custody.schemas.common import (
    SEEN_PATTERN,
    ApiNetwork,
    Count,
    Done,
    EmailAddress,
    Few,
    Int64,
    IntId,
    Label,
    Line,
    Name,
    NullString,
    NullTime,
    Prose,
    Request,
    Shape,
    TextId,
    Timestamp,
    WorkspaceQuery,
    WorkspaceRequest,
    Yes,
)
from custody.schemas.errors import ErrorCode

MOST_CHECK_MONTHS = 24
# An empty text takes away what is there.
NameOrNothing = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=100),
    AfterValidator(require_seen),
    Field(json_schema_extra=SEEN_PATTERN),
]
# ITU-T E.164 counts fifteen digits; people write them with spaces, brackets and dashes.
PhoneNumberOrNothing = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=32, pattern=r"^(\+?[0-9][0-9 ()./-]{2,30})?$")
]


class Permission(Shape):
    uid: Int64 = Field(alias="UID")
    rule_name: PermissionName = Field(alias="RuleName")


class Role(Shape):
    role_id: Int64 = Field(alias="RoleId")
    name: Label = Field(alias="Name")
    description: Prose = Field(alias="Description")
    perm: Few[Permission] = Field(alias="Perm")


class WorkspaceInfo(Shape):
    uid: Int64
    name: Label
    description: Prose
    net: ApiNetwork
    # Ours: which of the test networks it is, or mainnet.
    chain: Label = ""
    # Ours: each signer's device signs something once in so many months; 0 where nobody asks for it.
    key_check_months: Count = 0


class WorkspaceEntry(Shape):
    workspace_info: WorkspaceInfo = Field(alias="WorkspaceInfo")
    role: Role = Field(alias="Role")


class WorkspaceList(Shape):
    workspaces: Few[WorkspaceEntry] = Field(alias="Workspaces")


class Organisation(Shape):
    org_id: Int64 = Field(alias="OrgID")
    org_name: Label = Field(alias="OrgName")
    workspaces: WorkspaceList = Field(alias="Workspaces")


class OrganisationList(Shape):
    organisations: Few[Organisation] = Field(alias="Organisations")


class User(Shape):
    """The specification's User. ``DefaultOrg`` and ``DefaultWorkspace`` are 0 for an account that has none yet."""  # noqa: E501

    uuid: Int64 = Field(alias="UUID")
    email: Label = Field(alias="Email")
    first_name: NullString = Field(alias="FirstName")
    surname: NullString = Field(alias="Surname")
    last_login: NullTime = Field(alias="LastLogin")
    phone_number: NullString = Field(alias="PhoneNumber")
    default_org: Int64 = Field(alias="DefaultOrg")
    default_workspace: Int64 = Field(alias="DefaultWorkspace")
    organisations_info: OrganisationList = Field(alias="OrganisationsInfo")

    @classmethod
    def nobody(cls) -> "User":
        """Where the record is asked for and nobody is signed in yet."""
        nothing, never = NullString.of(None), NullTime.of(None)
        return cls(
            uuid=0,
            email="",
            first_name=nothing,
            surname=nothing,
            last_login=never,
            phone_number=nothing,
            default_org=0,
            default_workspace=0,
            organisations_info=OrganisationList(organisations=[]),
        )


class UpdateUserInfoRequest(Request):
    first_name: NameOrNothing | None = None
    surname: NameOrNothing | None = None
    phone_number: PhoneNumberOrNothing | None = None


class MailSettings(Shape):
    """``waiting``: a mail when something waits for one's signature or confirmation. ``amounts``: with amounts and
    addresses in it.
    """  # noqa: E501

    waiting: bool
    amounts: bool


class UpdateMailSettingsRequest(Request):
    """What is left out stays."""

    waiting: StrictBool | None = None
    amounts: StrictBool | None = None


class CreateWorkspaceRequest(WorkspaceRequest):
    """``workspace_id`` is the one that the request is made from."""

    org_id: IntId
    name: Name
    description: Line = ""
    network: ApiNetwork


class UpdateWorkspaceRequest(WorkspaceRequest):
    """What is left out stays. ``key_check_months``: once in how many months the device of each signer of a vault has to sign
    something, a payment or a challenge (``register-key``); 0 asks nobody.
    """  # noqa: E501

    name: Name | None = None
    description: Line | None = None
    key_check_months: Annotated[StrictInt, Field(ge=0, le=MOST_CHECK_MONTHS)] | None = None


USER_INFO = Call(
    "GET", "/api/v1/get-user-info", type(None), User,
    "The caller's own record: organisations, workspaces, and the role in each.",
    Auth.SIGNED_IN, open_to=frozenset({Way.BOUND}),
)  # fmt: skip
UPDATE_USER_INFO = Call(
    "POST", "/api/v1/update-user-info", UpdateUserInfoRequest, User,
    "Changes the caller's own name and telephone number. What is left out stays; an empty text takes it "
    "away.",
    Auth.SIGNED_IN,
)  # fmt: skip
SET_DEFAULT_WORKSPACE = Call(
    "POST", "/api/v1/set-default-workspace", WorkspaceRequest, User,
    "Makes one of the caller's workspaces the one that is shown first.",
    ANY_MEMBER, attempt="open the workspace",
)  # fmt: skip
MAIL_SETTINGS = Call(
    "GET", "/api/v1/mail-settings", type(None), MailSettings,
    "Whether the caller is mailed when something waits for them, and whether with amounts and addresses.",
    Auth.SIGNED_IN,
)  # fmt: skip
UPDATE_MAIL_SETTINGS = Call(
    "POST", "/api/v1/update-mail-settings", UpdateMailSettingsRequest, MailSettings,
    "Changes the caller's own.", Auth.SIGNED_IN, repeatable=True,
)  # fmt: skip
CREATE_WORKSPACE = Call(
    "POST", "/api/v1/create-workspace", CreateWorkspaceRequest, WorkspaceEntry,
    "Another workspace of the organisation, with its first roles. The caller is its administrator.",
    WORKSPACE_MANAGERS, creates=True, second_person="Make a workspace", cools=True,
    refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
UPDATE_WORKSPACE = Call(
    "POST", "/api/v1/update-workspace", UpdateWorkspaceRequest, WorkspaceInfo,
    "Changes a workspace's name, its description, and how often devices are checked. Its network is fixed.",
    WORKSPACE_MANAGERS, attempt="change the workspace", refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip


class AddWorkspaceToUserRequest(WorkspaceRequest):
    user_uuid: IntId
    role_uid: IntId
    creator_workspace_id: IntId
    creator_org_uuid: IntId


class AllocationResponse(Done):
    allocation_id: Int64


class LeaveWorkspaceRequest(WorkspaceRequest):
    """``force``: even where a vault is left with too few signers."""

    force: StrictBool = False


class RemoveUserRequest(LeaveWorkspaceRequest):
    user_uuid: IntId


class ChangeUserRoleRequest(RemoveUserRequest):
    """It takes approvals away, too, where the new role has none."""

    role_id: IntId


class Member(Shape):
    """``can_sign``: holds an active key on the workspace's network."""

    uuid: Int64 = Field(alias="UUID")
    email: Label = Field(alias="Email")
    first_name: NullString = Field(alias="FirstName")
    surname: NullString = Field(alias="Surname")
    role: Role = Field(alias="Role")
    can_sign: bool
    last_login: NullTime = Field(default=NullTime.model_construct(valid=False), alias="LastLogin")


class InvitationStatus(StrEnum):
    PENDING = "pending"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    EXPIRED = "expired"
    REVOKED = "revoked"


class InviteToWorkspaceRequest(Request):
    """The specification calls the workspace ``workspace_context`` here."""

    invited_email: EmailAddress
    workspace_context: IntId
    org_id: IntId
    role_id: IntId


class InviteResponse(Done):
    invite_id: Label


class Invitation(Shape):
    """``InvitedBy`` is an e-mail address: whom to ask about it, for somebody who is no member yet."""

    invite_uid: Label = Field(alias="InviteUID")
    invited_email: Label = Field(alias="InvitedEmail")
    org_id: Int64 = Field(alias="OrgID")
    org_name: Label = Field(alias="OrgName")
    workspace_id: Int64 = Field(alias="WorkspaceID")
    workspace_name: Label = Field(alias="WorkspaceName")
    role_id: Int64 = Field(alias="RoleID")
    role_name: Label = Field(alias="RoleName")
    invited_by: Label = Field(alias="InvitedBy")
    status: InvitationStatus = Field(alias="Status")
    created_at: Timestamp = Field(alias="CreatedAt")
    expires_at: Timestamp = Field(alias="ExpiresAt")


class AcceptInviteQuery(Request):
    """``accept=false`` declines."""

    invite_id: TextId
    accept: Yes


class RevokeInviteRequest(WorkspaceRequest):
    invite_id: TextId


MEMBERS = Call(
    "GET", "/api/v1/get-users-from-workspace", WorkspaceQuery, many(Member),
    "The members of a workspace, with their role and whether they can sign.",
    USER_MANAGERS, attempt="see the members", open_to=frozenset({Way.DECIDER}),
)  # fmt: skip
ADD_WORKSPACE_TO_USER = Call(
    "POST", "/api/v1/add-workspace-to-user", AddWorkspaceToUserRequest, AllocationResponse,
    "Adds a user of the organisation to a workspace, without an invitation, in a role that carries no more "
    "than yours.",
    WORKSPACE_MANAGERS, creates=True,
    second_person="Add a colleague to the workspace", cools=True,    refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
CHANGE_USER_ROLE = Call(
    "POST", "/api/v1/change-user-role", ChangeUserRoleRequest, Member,
    "Gives a member another role. Neither the old one nor the new one may carry what yours does not.",
    USER_MANAGERS, second_person="Give a member another role", cools=True,
    refuses=(ErrorCode.LAST_ADMIN, ErrorCode.STATE_CONFLICT),
)  # fmt: skip
REMOVE_USER_FROM_WORKSPACE = Call(
    "POST", "/api/v1/remove-user-from-workspace", RemoveUserRequest, Done,
    "Takes a member's place away, at once. Refused where a vault would keep too few signers, unless forced.",
    USER_MANAGERS, second_person="Remove a member", refuses=(ErrorCode.LAST_ADMIN, ErrorCode.STATE_CONFLICT),
)  # fmt: skip
LEAVE_WORKSPACE = Call(
    "POST", "/api/v1/leave-workspace", LeaveWorkspaceRequest, Done,
    "Gives up one's own place. The last administrator stays.",
    ANY_MEMBER, attempt="leave the workspace", open_to=frozenset({Way.UNLINKED}),
    refuses=(ErrorCode.LAST_ADMIN, ErrorCode.STATE_CONFLICT),
)  # fmt: skip
INVITE_TO_WORKSPACE = Call(
    "POST", "/api/v1/invite-to-workspace", InviteToWorkspaceRequest, InviteResponse,
    "Offers an address a place in the workspace, for seven days, and mails it. The address needs no account "
    "yet.\n\nThe role may carry nothing that the caller's own does not. One invitation of an address to a "
    "workspace is open at a\ntime; revoke it to send another.",
    USER_MANAGERS, creates=True, workspace_field="workspace_context", second_person="Invite a person",
    cools=True, refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
WORKSPACE_INVITATIONS = Call(
    "GET", "/api/v1/get-pending-workspace-invites", WorkspaceQuery, few(Invitation),
    "The workspace's invitations that wait for an answer, the oldest first.",
    USER_MANAGERS, attempt="see the invitations",
)  # fmt: skip
OWN_INVITATIONS = Call(
    "GET", "/api/v1/get-invites-pending", type(None), few(Invitation),
    "The caller's own invitations that wait for an answer, the oldest first.", Auth.SIGNED_IN,
)  # fmt: skip
ACCEPT_INVITE = Call(
    "GET", "/api/v1/accept-invite", AcceptInviteQuery, Invitation,
    "Accepts or declines the caller's own invitation, once and for good.\n\nIt changes something although it "
    "is a GET, as the specification has it; a mail scanner that follows links carries no\naccess token. The "
    "inviter must still be able to grant the role when it is accepted.",
    Auth.SIGNED_IN, changes=True,
    refuses=(ErrorCode.NOT_FOUND, ErrorCode.PERMISSION_DENIED, ErrorCode.STATE_CONFLICT),
)  # fmt: skip
REVOKE_INVITE = Call(
    "POST", "/api/v1/revoke-invite", RevokeInviteRequest, Invitation,
    "Takes an offer back that was not answered yet.",
    USER_MANAGERS, attempt="take back an invitation", refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
