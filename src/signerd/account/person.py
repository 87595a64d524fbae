"""Who is signed in, and in which workspaces: read leniently, for all else hangs on it.

Roles and their permissions are of no use here. A newer platform's permission must not keep a signer from signing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from custody.client.flow import Core, Plan, call, read
from custody.schemas.common import Shape
from custody.schemas.users import User, WorkspaceInfo
from signerd.account.listing import Listed, read_each
from signerd.account.wire import Workspace


@dataclass(frozen=True)
class Person:
    user_id: int
    workspaces: Listed[Workspace]


class _Entry(Shape):
    workspace_info: Any = Field(alias="WorkspaceInfo", default=None)


class _Workspaces(Shape):
    workspaces: list[_Entry] = Field(alias="Workspaces")


class _Organisation(Shape):
    workspaces: _Workspaces = Field(alias="Workspaces")


class _Organisations(Shape):
    organisations: list[_Organisation] = Field(alias="Organisations")


class _User(Shape):
    """What of the platform's user is needed here."""

    uuid: int = Field(alias="UUID")
    organisations_info: _Organisations = Field(alias="OrganisationsInfo")

    def infos(self) -> Iterator[Any]:
        for organisation in self.organisations_info.organisations:
            for entry in organisation.workspaces.workspaces:
                yield entry.workspace_info


def person_of(user: User) -> Person:
    infos = (
        entry.workspace_info
        for organisation in user.organisations_info.organisations
        for entry in organisation.workspaces.workspaces
    )
    return Person(user.uuid, Listed(tuple(map(_workspace, infos))))


def read_person(core: Core) -> Plan[Person]:
    """The same from an answer of which not all makes sense. Raises what the client raises; BadAnswer without an id."""
    found = read((yield from call(core, core.build("GET", "/api/v1/get-user-info"), repeatable=True)), _User)
    return Person(found.uuid, read_each(found.infos(), "uid", WorkspaceInfo, _workspace))


def _workspace(info: WorkspaceInfo) -> Workspace:
    return Workspace(info.uid, info.name, info.net)
