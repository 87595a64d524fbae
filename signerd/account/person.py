"""Who is signed in, and in which workspaces: read leniently, for all else hangs on it.

Roles and their permissions are of no use here. A newer platform's permission must not keep a signer from signing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from pydantic import TypeAdapter, ValidationError

from custody.client import BadAnswer
from custody.client.flow import Core, call
from custody.exchange import Plan
from custody.schemas.common import Int64
from custody.schemas.users import WorkspaceInfo
from signerd.account.listing import Listed, Unreadable, loosely, read_each
from signerd.account.wire import Workspace

# Each is followed by a task of its own, with a request that waits.
MOST_WORKSPACES = 100
_UUID: TypeAdapter[int] = TypeAdapter(Int64)


@dataclass(frozen=True)
class Person:
    user_id: int
    workspaces: Listed[Workspace]


def read_person(core: Core) -> Plan[Person]:
    """Raises what the client raises; BadAnswer without an id."""
    reply = yield from call(core, core.build("GET", "/api/v1/get-user-info"), repeatable=True)
    found = loosely(reply)
    try:
        user_id = _UUID.validate_python(found.get("UUID") if isinstance(found, dict) else None, strict=True)
    except ValidationError:
        raise BadAnswer("/api/v1/get-user-info: UUID: it is no number of a user") from None
    infos = list(islice(_infos(found), MOST_WORKSPACES + 1))
    listed = read_each(infos[:MOST_WORKSPACES], "uid", WorkspaceInfo, _workspace)
    # One id is one workspace, under the first name that it has.
    once = {workspace.id: workspace for workspace in reversed(listed.items)}
    more = (_TOO_MANY,) if len(infos) > MOST_WORKSPACES else ()
    return Person(user_id, Listed(tuple(reversed(once.values())), (*listed.unreadable, *more)))


_TOO_MANY = Unreadable(
    "the rest", f"the list has more than {MOST_WORKSPACES} workspaces, and is read so far."
)


def _infos(user: object) -> Iterator[object]:
    for organisation in _each(user, "OrganisationsInfo", "Organisations"):
        for entry in _each(organisation, "Workspaces", "Workspaces"):
            yield entry.get("WorkspaceInfo") if isinstance(entry, dict) else entry


def _each(value: object, outer: str, inner: str) -> list[object]:
    """The list within; where it is none, one entry that nothing can be read from, so that it is told."""
    within = value.get(outer) if isinstance(value, dict) else None
    found = within.get(inner) if isinstance(within, dict) else None
    return found if isinstance(found, list) else [None]


def _workspace(info: WorkspaceInfo) -> Workspace:
    return Workspace(info.uid, info.name, info.net)
