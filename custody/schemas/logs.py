"""The audit log as it is read and exported."""

from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints, WithJsonSchema, model_validator

from custody.schemas.call import Call, PermissionName, Way
from custody.schemas.common import (
    DIGITS,
    MAX_INT64,
    Count,
    DaysQuery,
    Few,
    Int64,
    Label,
    Many,
    PageSize,
    Prose,
    QueryId,
    Shape,
    Timestamp,
    Unreadable,
)
from custody.schemas.errors import ErrorCode

PAGE_SIZE = 50
MAX_NAMES = 4096
# Counting pages to here is a hundred million rows; a caller that reads further follows the cursor.
MAX_PAGE = 1_000_000

# The specification calls some ids text; what stands there is a number all the same.
IdText = Annotated[
    int,
    Field(ge=1, le=MAX_INT64),
    DIGITS,
    WithJsonSchema({"type": "string", "pattern": "^[1-9][0-9]{0,18}$"}),
]
CategoryText = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]{1,40}$")]
# As much text as a client reads of one answer.
ExportText = Annotated[str, StringConstraints(max_length=64 * 1024 * 1024)]
CursorText = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,18}$")]


class LogFilter(DaysQuery):
    """Days are inclusive, in UTC. ``category`` in either case. ``user_uuid``: what that person did, and their programs;
    0: the platform and its operator.
    """  # noqa: E501

    org_uid: IdText
    category: CategoryText | None = None
    user_uuid: Annotated[int, Field(ge=0, le=MAX_INT64), DIGITS] | None = None


class LogsQuery(LogFilter):
    """``cursor`` is the last answer's ``next_cursor``, and takes the place of ``page``: in a long log a page by its number reads all
    those before it.
    """  # noqa: E501

    workspace_uid: QueryId
    page: Annotated[int, Field(ge=1, le=MAX_PAGE), DIGITS] = 1
    page_size: PageSize = PAGE_SIZE
    cursor: CursorText | None = None
    order: Literal["oldest", "newest"] = "oldest"

    @model_validator(mode="after")
    def _one_place(self) -> "LogsQuery":
        if self.cursor is not None and self.page != 1:
            raise ValueError("give page or cursor, not both")
        return self


class ExportLogsQuery(LogFilter):
    """The workspace is text here, as the specification has it."""

    workspace_uid: IdText


class AuditLogEntry(Shape):
    """The specification's entry. Ids are text; the workspace's and the role's are empty where there is none."""  # noqa: E501

    event_uid: Label
    org_uid: Label
    workspace_uid: Label
    timestamp: Timestamp
    category: Label
    action: Label
    description: Prose
    user_uuid: Int64
    role_uid: Label
    trace_id: Label
    prev_hash: Label
    event_hash: Label
    user_name: Label


class LogRecipient(Shape):
    """Whom a payment pays: the first address, and how many others."""

    address: Label
    others: Count


class LogsPage(Shape):
    """Oldest first, so that rows appended meanwhile move nothing, unless ``order`` says otherwise. ``total`` counts all pages.

    ``next_cursor`` is null on the last page. ``names``: what the rows name by an id, and who acted, as they are called now,
    by the words that stand there: ``vault 1f…``, ``role 3``, ``user 7``; what has no name is left out. ``recipients``: whom
    the payments pay that the rows name, by their ids, for who may read payments.
    """  # noqa: E501

    logs: Many[AuditLogEntry]
    # Those of the page that cannot be shown.
    unreadable: Few[Unreadable] = Field(default_factory=list)
    names: dict[Label, Prose] = Field(default_factory=dict, max_length=MAX_NAMES)
    recipients: dict[Label, LogRecipient] = Field(default_factory=dict, max_length=MAX_NAMES)
    page: Count
    page_size: Count
    total: Int64
    next_cursor: Label | None


class ExportedLogs(Shape):
    """Everything that matched, as RFC 4180."""

    # Its lines end in CRLF: write it with ``newline=""``.
    csv: ExportText


READERS: Final = frozenset({PermissionName.VIEW_LOGS})
LOGS = Call(
    "GET", "/api/v1/get-logs", LogsQuery, LogsPage,
    "A page of the workspace's log, the oldest first. Follow ``next_cursor``: rows that come meanwhile "
    "move nothing.",
    READERS, workspace_field="workspace_uid", attempt="read the audit log", open_to=frozenset({Way.PROGRAM}),
    refuses=(ErrorCode.NOT_ORG_MEMBER,),
)  # fmt: skip
EXPORT_AUDIT_LOGS = Call(
    "GET", "/api/v1/export-audit-logs", ExportLogsQuery, ExportedLogs,
    "Everything that matches as CSV (RFC 4180), safe to open in a spreadsheet. The export is itself "
    "recorded.",
    READERS, workspace_field="workspace_uid", attempt="export the audit log",
    open_to=frozenset({Way.PROGRAM}), refuses=(ErrorCode.NOT_ORG_MEMBER,),
    # Each export is recorded.
    repeatable=False,
)  # fmt: skip
