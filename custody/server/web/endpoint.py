"""An endpoint as a row of the table: what it takes and returns, who may call it, and its handler."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import urlencode

from pydantic import BaseModel
from sqlalchemy.orm import Session
from starlette.requests import Request

from custody.schemas.call import Call as Declared
from custody.schemas.call import Page
from custody.schemas.common import Unreadable
from custody.schemas.errors import ErrorCode
from custody.schemas.permissions import Auth, PermissionName
from custody.server.domain.credentials import Caller, WorkspaceAccess
from custody.server.domain.errors import CustodyError
from custody.server.service.people.people import enter
from custody.server.service.services import Services
from custody.server.service.sign_in.sessions import require_session

Body_co = TypeVar("Body_co", bound=BaseModel | None, covariant=True)


class Unit(Enum):
    """The transaction that a handler runs in."""

    READ = "read"  # a snapshot
    WRITE = "write"  # committed when the handler returns, rolled back when it raises
    # The handler (``def`` or ``async def``) opens what it needs: sign-in, long polls, checks outside the
    # lock.
    OWN = "own"


@dataclass(frozen=True)
class Endpoint:
    """``takes``: the body of a POST, the query of a GET, or nothing. ``answers``: the type of a 200.

    ``needs``: an `Auth`, or permissions of which the caller must have one in the workspace that
    ``workspace_id`` of the body or query names (an empty set: be a member). The runner checks it, except for
    ``Unit.OWN``, where the handler calls ``call.enter``. ``creates``: ``Idempotency-Key`` is honoured; for
    ``Unit.WRITE`` only. ``carries_psbt``: the body may be as large as a PSBT. ``workspace_field``: the
    specification's name for ``workspace_id`` in this endpoint.

    ``needs_second_person``: where the organisation has the rule, a declared call has to be requested and
    confirmed instead.

    ``refuses``: the handler's errors besides the runner's and ``Invalid``, for the OpenAPI document.
    ``extra`` adds to that document. A ``{name}`` in the path is a record's number, in ``call.ids``.
    """

    method: Literal["GET", "POST"]
    path: str
    handler: Callable[["Call[Any]"], Any]
    answers: Any
    needs: Auth | frozenset[PermissionName]
    unit: Unit
    takes: type[BaseModel] | None = None
    creates: bool = False
    carries_psbt: bool = False
    workspace_field: str = "workspace_id"
    needs_second_person: bool = False
    refuses: tuple[type[CustodyError] | ErrorCode, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    # A call that `custody.server.calls` makes.
    declared: Declared[Any, Any] | None = None

    @property
    def path_ids(self) -> tuple[str, ...]:
        return tuple(re.findall(r"{(\w+)}", self.path))

    @property
    def is_write(self) -> bool:
        return self.method == "POST" or self.unit is Unit.WRITE

    @property
    def permissions(self) -> frozenset[PermissionName]:
        return self.needs if isinstance(self.needs, frozenset) else frozenset()


@dataclass(frozen=True)
class Call(Generic[Body_co]):
    """One parsed and authorised request. ``caller``, ``db`` and ``access`` raise where there is none."""

    endpoint: Endpoint
    services: Services
    request: Request
    body: Body_co
    trace_id: str
    maybe_caller: Caller | None = None
    maybe_db: Session | None = None
    maybe_access: WorkspaceAccess | None = None
    ids: Mapping[str, int] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The path as called, with its ids."""
        return self.endpoint.path.format(**self.ids)

    @property
    def caller(self) -> Caller:
        assert self.maybe_caller is not None, "an open endpoint has no caller"
        return self.maybe_caller

    @property
    def db(self) -> Session:
        assert self.maybe_db is not None, "a handler of Unit.OWN opens its own transaction"
        return self.maybe_db

    @property
    def access(self) -> WorkspaceAccess:
        assert self.maybe_access is not None, "the endpoint names no workspace, or is Unit.OWN"
        return self.maybe_access

    def enter(self, db: Session, workspace_id: int) -> WorkspaceAccess:
        """The check that the runner makes except for ``Unit.OWN``. It checks the session too, because a
        handler may have waited. Raises NotFound, PermissionDenied, Unauthenticated.
        """
        if self.endpoint.unit is Unit.OWN:
            require_session(db, self.caller)
        return enter(db, self.caller, workspace_id, self.endpoint.permissions, self.services.tools.clock())


def page_headers(path: str, query: BaseModel, page: Page[Any], key: str) -> dict[str, str]:
    """How many there are, and where the next page begins (RFC 8288)."""
    headers = {"X-Total-Count": str(page.total)}
    if page.has_more:
        values = query.model_dump(mode="json", exclude_none=True)
        last = page.items[-1]
        values["after"] = last.row_id if isinstance(last, Unreadable) else getattr(last, key)
        headers["Link"] = f'<{path}?{urlencode(values)}>; rel="next"'
    return headers


def address_of(request: Request) -> str:
    """The client's address; behind a trusted proxy, the one that it reports."""
    return request.client.host if request.client else "local"


def services_of(request: Request) -> Services:
    """The use cases of this platform."""
    services: Services = request.app.state.services
    return services
