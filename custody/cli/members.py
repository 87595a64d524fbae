"""``custody member list``, ``add`` and ``remove``."""

from collections.abc import Iterable
from typing import TYPE_CHECKING
from uuid import uuid4

import click

from custody.cli.changes import made_or_asked, told
from custody.cli.common import confirm, json_option, yes_option
from custody.cli.desk import Desk, pass_desk
from custody.cli.meant import Place, chosen, place_of, workspace_option
from custody.naming import Candidate
from custody.terminal import answer, aside, say, table

if TYPE_CHECKING:
    from custody.client import Client
    from custody.schemas.members import Member
    from custody.schemas.roles import RoleDetails
    from custody.schemas.vaults import VaultSigner


def full_name(one: "Member | VaultSigner", without: str = "(no name)") -> str:
    return f"{one.first_name.value or ''} {one.surname.value or ''}".strip() or without


def people_of(client: "Client", place: Place) -> dict[str, str]:
    """The name, else the e-mail address, by user id. Empty where the caller may not read the members: the
    platform is not asked then, because the audit log records each refusal.
    """
    if "MANAGE_USERS" not in place.permissions:
        return {}
    return {str(one.uuid): full_name(one, one.email) for one in client.members(place.workspace_id)}


def candidates_of(members: "Iterable[Member]") -> list[Candidate]:
    """Members can be named by id, e-mail address or name."""
    return [
        Candidate(str(one.uuid), (one.email, full_name(one)), f"{full_name(one)} <{one.email}>")
        for one in members
    ]


def role_of(client: "Client", workspace_id: int, given: str, *, unseen: bool = False) -> "RoleDetails":
    """Raises Stop."""
    known = {str(role.role_id): role for role in client.roles(workspace_id)}
    candidates = [Candidate(key, (role.name,), f"'{role.name}'") for key, role in known.items()]
    return known[chosen(given, candidates, "role", "custody limit list lists them.", unseen=unseen)]


@click.group("member")
def member() -> None:
    """The people of a workspace."""


@member.command("list")
@pass_desk
@workspace_option
@json_option
def list_command(desk: Desk, workspace: str | None, as_json: bool) -> None:
    """List the members, and those who are invited."""
    with desk.client() as client:
        place = place_of(client, workspace)
        members = client.members(place.workspace_id)
        invited = client.workspace_invitations(place.workspace_id)
    if as_json:
        answer({"members": members, "invited": invited})
        return
    rows = [
        (str(one.uuid), one.email, full_name(one), one.role.name, "yes" if one.can_sign else "no")
        for one in members
    ]
    table(("ID", "E-MAIL", "NAME", "ROLE", "CAN SIGN"), rows)
    for offer in invited:
        say(f"Invited: {offer.invited_email} as {offer.role_name}, until {offer.expires_at:%Y-%m-%d}.")


@member.command("add")
@pass_desk
@click.argument("email")
@click.option("--role", default="Signer", help="The name or id of a role of the workspace.")
@workspace_option
@yes_option
@json_option
def add_command(desk: Desk, email: str, role: str, workspace: str | None, yes: bool, as_json: bool) -> None:
    """Invite a person, who becomes a member by accepting."""
    from custody.schemas.invitations import InviteToWorkspaceRequest

    with desk.client() as client:
        place = place_of(client, workspace)
        found = role_of(client, place.workspace_id, role, unseen=yes)
        request = InviteToWorkspaceRequest(
            invited_email=email,
            workspace_context=place.workspace_id,
            org_id=place.org_id,
            role_id=found.role_id,
        )
        rights = ", ".join(sorted(one.rule_name for one in found.perm)) or "nothing"
        aside(f"{request.invited_email} as {found.name} of '{place.name}', {place.organisation}")
        aside(f"  The role may: {rights}")
        confirm(desk.answers, "Send this invitation?", yes=yes)
        made = made_or_asked(
            desk,
            client,
            place,
            "/api/v1/invite-to-workspace",
            request,
            lambda: client.invite_to_workspace(request, idempotency_key=uuid4().hex),
            yes=yes,
        )
    told(made, f"{request.invited_email} is invited.", as_json=as_json)


@member.command("remove")
@pass_desk
@click.argument("given", metavar="MEMBER", help="An id, an e-mail address or a name.")
@click.option("--force", is_flag=True, help="Even where a vault keeps too few signers.")
@workspace_option
@yes_option
@json_option
def remove_command(
    desk: Desk, given: str, force: bool, workspace: str | None, yes: bool, as_json: bool
) -> None:
    """Remove a person from the workspace. Their keys stay in the vaults that hold them."""
    from custody.schemas.members import RemoveUserRequest

    with desk.client() as client:
        place = place_of(client, workspace)
        known = {str(one.uuid): one for one in client.members(place.workspace_id)}
        hint = "custody member list lists them."
        one = known[chosen(given, candidates_of(known.values()), "member", hint, unseen=yes)]
        aside(f"{full_name(one)} <{one.email}>, {one.role.name} of '{place.name}', {place.organisation}")
        confirm(desk.answers, "Remove this member?", yes=yes)
        request = RemoveUserRequest(workspace_id=place.workspace_id, user_uuid=one.uuid, force=force)
        done = made_or_asked(
            desk,
            client,
            place,
            "/api/v1/remove-user-from-workspace",
            request,
            lambda: client.remove_user_from_workspace(request),
            yes=yes,
        )
    told(done, f"{one.email} is no longer a member.", as_json=as_json)
