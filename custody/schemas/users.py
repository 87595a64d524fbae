"""People, organisations and workspaces, as ``GET /api/v1/get-user-info`` shows them, and what changes them;
and what a person is mailed when something waits for them.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StrictBool, StringConstraints

from custody.schemas.common import (
    ApiNetwork,
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
)


class PermissionName(StrEnum):
    MANAGE_WORKSPACE = "MANAGE_WORKSPACE"
    PAYMENT_INIT = "PAYMENT_INIT"
    PAYMENT_APPROVE = "PAYMENT_APPROVE"
    VIEW_BALANCES = "VIEW_BALANCES"
    MANAGE_ROLE = "MANAGE_ROLE"
    MANAGE_USERS = "MANAGE_USERS"
    VIEW_LOGS = "VIEW_LOGS"


# ITU-T E.164 counts fifteen digits; people write them with spaces, brackets and dashes.
PhoneNumber = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=32, pattern=r"^\+?[0-9][0-9 ()./-]{2,30}$")
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


class AddWorkspaceToUserRequest(Request):
    """``POST /api/v1/add-workspace-to-user``: a membership without an invitation."""

    workspace_id: IntId
    user_uuid: IntId
    role_uid: IntId
    creator_workspace_id: IntId
    creator_org_uuid: IntId


class AllocationResponse(Shape):
    success: bool = True
    allocation_id: Int64


class RemoveUserRequest(Request):
    """``POST /api/v1/remove-user-from-workspace``. ``force``: even where a vault keeps too few signers."""

    workspace_id: IntId
    user_uuid: IntId
    force: StrictBool = False


class ChangeUserRoleRequest(Request):
    """``POST /api/v1/change-user-role``. ``force``: even where a vault keeps too few signers."""

    workspace_id: IntId
    user_uuid: IntId
    role_id: IntId
    force: StrictBool = False


class LeaveWorkspaceRequest(Request):
    """``POST /api/v1/leave-workspace``. ``force``: even where a vault keeps too few signers."""

    workspace_id: IntId
    force: StrictBool = False


class SetDefaultWorkspaceRequest(Request):
    """``POST /api/v1/set-default-workspace``: one of the caller's own."""

    workspace_id: IntId


class UpdateUserInfoRequest(Request):
    """``POST /api/v1/update-user-info``: of the caller. What is left out stays; an empty text takes it away."""  # noqa: E501

    first_name: Name | Literal[""] | None = None
    surname: Name | Literal[""] | None = None
    phone_number: PhoneNumber | Literal[""] | None = None


class CreateWorkspaceRequest(Request):
    """``POST /api/v1/create-workspace``. ``workspace_id`` is the one that the request is made from."""

    workspace_id: IntId
    org_id: IntId
    name: Name
    description: Line = ""
    network: ApiNetwork


class UpdateWorkspaceRequest(Request):
    """``POST /api/v1/update-workspace``. What is left out stays."""

    workspace_id: IntId
    name: Name | None = None
    description: Line | None = None


class Member(Shape):
    """A row of ``GET /api/v1/get-users-from-workspace``. ``can_sign``: holds an active key on the workspace's network."""  # noqa: E501

    uuid: Int64 = Field(alias="UUID")
    email: Label = Field(alias="Email")
    first_name: NullString = Field(alias="FirstName")
    surname: NullString = Field(alias="Surname")
    role: Role = Field(alias="Role")
    can_sign: bool
    last_login: NullTime = Field(default=NullTime.model_construct(valid=False), alias="LastLogin")


class MailSettings(Shape):
    """``waiting``: a mail when something waits for one's signature or confirmation. ``amounts``: with amounts and
    addresses in it.
    """  # noqa: E501

    waiting: bool
    amounts: bool


class UpdateMailSettingsRequest(Request):
    """``POST /api/v1/update-mail-settings``: what is left out stays."""

    waiting: StrictBool | None = None
    amounts: StrictBool | None = None
