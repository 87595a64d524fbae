"""Changes that need a second person: one member asks, another confirms (docs/operate/second-person.md)."""

from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, StrictBool, StrictInt, StringConstraints, model_validator
from typing_extensions import TypeAliasType

from custody.schemas.call import ANY_MEMBER, WORKSPACE_MANAGERS, Call, Way, few
from custody.schemas.common import (
    ApiNetwork,
    Count,
    Int64,
    IntId,
    Label,
    Prose,
    Shape,
    Text,
    TextId,
    Timestamp,
    WorkspaceQuery,
    WorkspaceRequest,
)
from custody.schemas.errors import ErrorCode

MAX_COOLING_OFF_HOURS = 14 * 24
# What any call takes or answers: no text, list or mapping of those calls is longer.
Json = TypeAliasType(
    "Json",
    "bool | Int64 | Prose | Annotated[list[Json], Field(max_length=1_000)]"
    " | Annotated[dict[Label, Json], Field(max_length=100)] | None",
)
# The body of a call that is asked for: none has as many fields.
Body = Annotated[dict[Label, Json], Field(max_length=30)]


class ChangeStatus(StrEnum):
    PENDING = "PENDING"
    APPLIED = "APPLIED"
    DECLINED = "DECLINED"
    EXPIRED = "EXPIRED"


class SecondPersonRule(Shape):
    """An organisation's rule. A member who holds the role ``confirming_role_id`` of its first workspace confirms; ``role_name``: what it is called now."""  # noqa: E501

    org_id: Int64
    is_on: bool
    confirming_role_id: Int64 | None = None
    role_name: Label | None = None
    cooling_off_hours: Count = 0
    set_by: Label | None = None
    set_by_name: Label | None = None
    set_at: Timestamp | None = None


class SecondPersonRuleRequest(WorkspaceRequest):
    """Of the organisation that the workspace belongs to."""

    is_on: StrictBool
    confirming_role_id: IntId | None = None
    cooling_off_hours: Annotated[StrictInt, Field(ge=0, le=MAX_COOLING_OFF_HOURS)] = 0

    @model_validator(mode="after")
    def _names_a_role(self) -> "SecondPersonRuleRequest":
        if self.is_on is (self.confirming_role_id is None):
            raise ValueError("confirming_role_id: give the role whose members confirm, where the rule is on")
        return self


class RequestChangeRequest(WorkspaceRequest):
    """``path`` and ``body`` of the call that is asked for."""

    path: Annotated[str, StringConstraints(max_length=100, pattern=r"^/api/v1/[a-z0-9-]+$")]
    body: Body

    @classmethod
    def of(cls, call: Call[Any, Any], request: BaseModel) -> Self:
        """The change that makes the call with this request."""
        body = request.model_dump(mode="json", by_alias=True, exclude_none=True)
        return cls(workspace_id=getattr(request, call.workspace_field), path=call.path, body=body)


class ChangeRequest(WorkspaceRequest):
    """``workspace_id``: where the caller holds the role that confirms, in the change's organisation."""

    change_id: TextId


class ConfirmChangeRequest(ChangeRequest):
    """``in_force``: of the change that was read. Where something else holds by now, nothing is confirmed."""

    in_force: Body | None = None


class DeclineChangeRequest(ChangeRequest):
    reason: Text | None = None


class ChangesQuery(WorkspaceQuery):
    """The newest first, or one."""

    change_id: TextId | None = None


class Change(Shape):
    """``network``, ``chain`` and ``workspace_name`` are the workspace's. ``names``: of the records in a
    change's body, by its field; what is not there is left out. ``in_force``: what holds now, or held when it
    was decided, in the place of fields of its body, for limits, a vault's controls and the rule: of a record,
    its name.
    ``asked_by``, ``decided_by``: user ids. It is confirmed from ``not_before`` until ``expires_at``.
    """

    change_id: Label
    workspace_id: Int64
    workspace_name: Label = ""
    network: ApiNetwork
    chain: Label = ""
    path: Label
    body: Body
    names: dict[Label, Prose] = Field(default_factory=dict, max_length=16)
    in_force: Body = Field(default_factory=dict)
    status: ChangeStatus
    asked_by: Label
    asked_by_name: Label
    asked_at: Timestamp
    not_before: Timestamp
    expires_at: Timestamp
    decided_by: Label | None = None
    decided_by_name: Label | None = None
    decided_at: Timestamp | None = None
    reason: Prose | None = None


class AppliedChange(Shape):
    """``answer``: what the call answered, as if it had been made directly."""

    change: Change
    answer: Json


_DECIDERS = frozenset({Way.DECIDER})

SECOND_PERSON_RULE = Call(
    "GET", "/api/v1/second-person-rule", WorkspaceQuery, SecondPersonRule,
    "Whether the organisation's changes of policy need a second person, and of which role.",
    ANY_MEMBER, attempt="see the rule of the second person", open_to=_DECIDERS,
)  # fmt: skip
UPDATE_SECOND_PERSON_RULE = Call(
    "POST", "/api/v1/update-second-person-rule", SecondPersonRuleRequest, SecondPersonRule,
    "Switches the rule on, by a member with all seven permissions. Once it is on, whatever changes it needs "
    "a second\nperson itself.",
    WORKSPACE_MANAGERS, second_person="Change the rule of the second person",
    cools=True, refuses=(ErrorCode.LAST_ADMIN,),
)  # fmt: skip
REQUEST_CHANGE = Call(
    "POST", "/api/v1/request-change", RequestChangeRequest, Change,
    "Asks for a call that needs a second person: it is tried out, rolled back and recorded. Somebody else "
    "confirms it.",
    ANY_MEMBER, attempt="ask a second person", repeatable=True, refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
CHANGES = Call(
    "GET", "/api/v1/changes", ChangesQuery, few(Change),
    "The organisation's changes, the newest first: all for a member who may confirm, else the caller's own.",
    ANY_MEMBER, attempt="see what waits for a second person", open_to=_DECIDERS,
)  # fmt: skip
CONFIRM_CHANGE = Call(
    "POST", "/api/v1/confirm-change", ConfirmChangeRequest, AppliedChange,
    "Applies a change that somebody else asked for, in their name, with every check as of now.",
    ANY_MEMBER, attempt="confirm what waits for a second person", open_to=_DECIDERS,
    refuses=(
        ErrorCode.LAST_ADMIN, ErrorCode.NOT_FOUND, ErrorCode.PERMISSION_DENIED, ErrorCode.STATE_CONFLICT,
    ),
)  # fmt: skip
DECLINE_CHANGE = Call(
    "POST", "/api/v1/decline-change", DeclineChangeRequest, Change,
    "Ends a change that waits: by a member who may confirm it, or the one who asked for it.",
    ANY_MEMBER, attempt="decline what waits for a second person", open_to=_DECIDERS,
    refuses=(ErrorCode.NOT_FOUND, ErrorCode.PERMISSION_DENIED, ErrorCode.STATE_CONFLICT),
)  # fmt: skip
