"""People, organisations and workspaces, as ``GET /api/v1/get-user-info`` shows them; what a person changes of
their own record and is mailed; an organisation's other workspaces, and their names.
"""

from typing import Annotated

from pydantic import AfterValidator, Field, StrictBool, StringConstraints

from custody.common.text import require_seen
from custody.schemas.call import ANY_MEMBER, WORKSPACE_MANAGERS, Auth, Call, PermissionName, Way
from custody.schemas.common import (
    SEEN_PATTERN,
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
    WorkspaceRequest,
)
from custody.schemas.errors import ErrorCode

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
    """``POST /api/v1/update-user-info``: of the caller. What is left out stays; an empty text takes it away."""  # noqa: E501

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
    """``POST /api/v1/update-mail-settings``: what is left out stays."""

    waiting: StrictBool | None = None
    amounts: StrictBool | None = None


class CreateWorkspaceRequest(WorkspaceRequest):
    """``POST /api/v1/create-workspace``. ``workspace_id`` is the one that the request is made from."""

    org_id: IntId
    name: Name
    description: Line = ""
    network: ApiNetwork


class UpdateWorkspaceRequest(WorkspaceRequest):
    """``POST /api/v1/update-workspace``. What is left out stays."""

    name: Name | None = None
    description: Line | None = None


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
    "Changes a workspace's name and description. Its network is fixed.",
    WORKSPACE_MANAGERS, attempt="change the workspace's name", refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
