"""What a command in a workspace starts from; and what a person names there: the workspace, and anything else
by its id, the beginning of it, or its name.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import click

from custody.cli.common import Stop, fail, json_option
from custody.cli.desk import ClientDesk, is_program, pass_desk
from custody.common.naming import Ambiguous, NamedRecord, named
from custody.common.terminal import Exit

if TYPE_CHECKING:
    from pydantic import BaseModel

    from custody.client import Client
    from custody.schemas.call import Call

T = TypeVar("T")
Input = TypeVar("Input", bound="BaseModel")
Answer = TypeVar("Answer")
Command = Callable[..., None]

workspace_option = click.option(
    "--workspace",
    envvar="CUSTODY_WORKSPACE",
    metavar="NAME",
    help="Its name or id; default: the account's own default.",
)


@dataclass(frozen=True)
class NamedWorkspace:
    """A workspace of the caller's. ``network``: mainnet or testnet, as the API has it; ``chain``: which one.
    ``permissions``: the person's own in it; empty for a service account, whose commands do not read them.
    """

    org_id: int
    workspace_id: int
    name: str
    organisation: str
    network: str
    chain: str
    role: str
    permissions: frozenset[str]

    @property
    def words(self) -> str:
        return f"'{self.name}' of {self.organisation}"


def chosen(
    given: str, candidates: Iterable[NamedRecord[T]], kind: str, hint: str, *, unseen: bool = False
) -> T:
    """The record that a person named. ``hint``: which command lists them. ``unseen``: no person checks what
    was found (``--yes``), so the beginning of an id is not enough.

    Raises:
        Stop: none matches, or several do.
    """
    try:
        match = named(given, candidates, kind)
    except Ambiguous as error:
        raise Stop(str(error), error.hint, Exit.USAGE) from None
    if match is None:
        fail(f"there is no {kind} '{given}'", hint, Exit.NOT_FOUND)
    is_whole = given == match.id or any(given.strip().casefold() == name.casefold() for name in match.names)
    if unseen and not is_whole:
        fail(
            f"with --yes a {kind} is named by its whole id or name: you are not asked about what was found",
            f"'{given}' is {match.id}: {match.words}",
            Exit.USAGE,
        )
    return match.record


def workspaces(client: "Client") -> list[NamedWorkspace]:
    """The caller's workspaces, the default one first."""
    if is_program():
        own = client.own_service_account()
        name, organisation = f"workspace {own.workspace_id}", f"organisation {own.org_id}"
        return [
            NamedWorkspace(
                own.org_id, own.workspace_id, name, organisation, "", "", "service account", frozenset()
            )
        ]
    user = client.user_info()
    listed = [
        NamedWorkspace(
            one.org_id,
            entry.workspace_info.uid,
            entry.workspace_info.name,
            one.org_name,
            entry.workspace_info.net,
            entry.workspace_info.chain,
            entry.role.name,
            frozenset(str(one.rule_name) for one in entry.role.perm),
        )
        for one in user.organisations_info.organisations
        for entry in one.workspaces.workspaces
    ]
    return sorted(listed, key=lambda each: each.workspace_id != user.default_workspace)


def workspace_named(client: "Client", given: str | None) -> NamedWorkspace:
    """Raises Stop."""
    known = workspaces(client)
    if not known:
        fail("this account is in no workspace", "Ask an administrator for an invitation.", Exit.NOT_DECIDED)
    if given is None:
        return known[0]
    candidates = [NamedRecord(str(one.workspace_id), (one.name,), one.words, one) for one in known]
    return chosen(given, candidates, "workspace", "custody whoami lists them.")


@dataclass(frozen=True)
class Access:
    """A signed-in client in a workspace, and how the command asks. ``yes``: nobody is asked."""

    desk: ClientDesk
    client: "Client"
    workspace: NamedWorkspace
    yes: bool

    @property
    def workspace_id(self) -> int:
        return self.workspace.workspace_id

    def pick(self, given: str, candidates: Iterable[NamedRecord[T]], kind: str, hint: str) -> T:
        """The record that a person named. Raises Stop, as ``chosen``."""
        return chosen(given, candidates, kind, hint, unseen=self.yes)

    def request(self, call: Callable[[Input], Any], **given: Any) -> Input:
        """The request of a method of the client; it names this workspace. Raises ValidationError
        (`refusals`).
        """
        takes: type[Input] = declared_of(call).takes
        here = self.workspace_id
        ids = {"workspace_id": here, "workspace_context": here, "org_id": self.workspace.org_id}
        taken = {name: value for name, value in ids.items() if name in takes.model_fields}
        return takes.model_validate(taken | given)

    def make(self, call: Callable[[Input], Answer], request: Input | None = None, /, **given: Any) -> Answer:
        """Makes the call, with the request or with one of what is given. Raises what the client does."""
        key = {"idempotency_key": uuid4().hex} if declared_of(call).creates else {}
        return call(self.request(call, **given) if request is None else request, **key)

    def confirm(self, question: str) -> None:
        """Returns after a yes. Raises Stop."""
        if not self.yes and not self.desk.answers.yes(question):
            raise Stop("Nothing was done", "", Exit.DECLINED)


def declared_of(call: Callable[..., Any]) -> "Call[Any, Any]":
    """The declaration of a method of the client."""
    declared: Call[Any, Any] = call.plan.declared  # type: ignore[attr-defined]  # `custody.client.flow.sends`
    return declared


def with_access(command: Command) -> Command:
    """Signs in, and calls the command with its ``Access``."""

    @wraps(command)
    def run(desk: ClientDesk, /, *, workspace: str | None, yes: bool = False, **given: Any) -> None:
        with desk.client() as client:
            command(Access(desk, client, workspace_named(client, workspace), yes), **given)

    return pass_desk(run)


def in_workspace(command: Command) -> Command:
    """A command that reads: ``--workspace`` and ``--json``."""
    return workspace_option(json_option(with_access(command)))


def asking_in_workspace(command: Command) -> Command:
    """A command that shows, asks and acts: with ``--yes``, too."""
    yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask: for scripts.")
    return workspace_option(yes_option(json_option(with_access(command))))
