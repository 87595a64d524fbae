"""Resolve what a person names: the workspace, and anything else by its id, the beginning of it, or its
name.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from custody.cli.common import Stop, fail
from custody.cli.desk import is_program
from custody.naming import Ambiguous, Candidate, named
from custody.terminal import Exit

if TYPE_CHECKING:
    from custody.client import Client

workspace_option = click.option(
    "--workspace",
    envvar="CUSTODY_WORKSPACE",
    metavar="NAME",
    help="Its name or id; default: the account's own default.",
)


@dataclass(frozen=True)
class Place:
    """A workspace of the caller's. ``network``: mainnet or testnet, as the API has it. ``permissions``: the
    person's own in it; empty for a service account, whose commands do not read them.
    """

    org_id: int
    workspace_id: int
    name: str
    organisation: str
    network: str
    role: str
    permissions: frozenset[str]


def chosen(given: str, candidates: Iterable[Candidate], kind: str, hint: str, *, unseen: bool = False) -> str:
    """The id of the candidate that a person named. ``hint``: which command lists them. ``unseen``: no person
    checks what was found (``--yes``), so the beginning of an id is not enough.

    Raises:
        Stop: none matches, or several do.
    """
    known = list(candidates)
    try:
        found = named(given, known, kind)
    except Ambiguous as error:
        raise Stop(str(error), error.hint, Exit.NOT_DECIDED) from None
    if found is None:
        fail(f"there is no {kind} '{given}'", hint, Exit.NOT_DECIDED)
    is_whole = given == found.id or any(given.strip().casefold() == name.casefold() for name in found.names)
    if unseen and not is_whole:
        fail(
            f"with --yes a {kind} is named by its whole id or name: you are not asked about what was found",
            f"'{given}' is {found.id}: {found.words}",
            Exit.USAGE,
        )
    return found.id


def places(client: "Client") -> list[Place]:
    """The caller's workspaces, the default one first."""
    if is_program():
        own = client.own_service_account()
        name, organisation = f"workspace {own.workspace_id}", f"organisation {own.org_id}"
        return [Place(own.org_id, own.workspace_id, name, organisation, "", "service account", frozenset())]
    user = client.user_info()
    found = [
        Place(
            one.org_id,
            entry.workspace_info.uid,
            entry.workspace_info.name,
            one.org_name,
            entry.workspace_info.net,
            entry.role.name,
            frozenset(str(one.rule_name) for one in entry.role.perm),
        )
        for one in user.organisations_info.organisations
        for entry in one.workspaces.workspaces
    ]
    return sorted(found, key=lambda place: place.workspace_id != user.default_workspace)


def place_of(client: "Client", given: str | None) -> Place:
    """Raises Stop."""
    known = places(client)
    if not known:
        fail("this account is in no workspace", "Ask an administrator for an invitation.", Exit.NOT_DECIDED)
    if given is None:
        return known[0]
    candidates = [
        Candidate(str(one.workspace_id), (one.name,), f"'{one.name}' of {one.organisation}") for one in known
    ]
    wanted = chosen(given, candidates, "workspace", "custody whoami lists them.")
    return next(one for one in known if str(one.workspace_id) == wanted)
