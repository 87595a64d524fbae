"""``custody member list``, ``add`` and ``remove``."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from custody.cli.access import Access, asking_in_workspace, in_workspace
from custody.cli.changes import make_or_ask
from custody.cli.common import wants_json
from custody.common.naming import NamedRecord
from custody.common.terminal import answer, aside, say, table

if TYPE_CHECKING:
    from custody.schemas.roles import RoleDetails
    from custody.schemas.users import Member
    from custody.schemas.vaults import VaultSigner


def full_name(one: "Member | VaultSigner", without: str = "(no name)") -> str:
    return f"{one.first_name.value or ''} {one.surname.value or ''}".strip() or without


def people_of(access: Access) -> dict[str, str]:
    """The name, else the e-mail address, by user id. Empty where the caller may not read the members: the
    platform is not asked then, because the audit log records each refusal.
    """
    if "MANAGE_USERS" not in access.workspace.permissions:
        return {}
    members = access.client.members(access.workspace_id)
    return {str(one.uuid): full_name(one, one.email) for one in members}


def members_of(access: Access, given: Iterable[str]) -> "list[Member]":
    """Each by an id, an e-mail address or a name. Raises Stop."""
    known = [
        NamedRecord(str(one.uuid), (one.email, full_name(one)), f"{full_name(one)} <{one.email}>", one)
        for one in access.client.members(access.workspace_id)
    ]
    return [access.pick(one, known, "member", "custody member list lists them.") for one in given]


def role_of(access: Access, given: str) -> "RoleDetails":
    """Raises Stop."""
    roles = access.client.roles(access.workspace_id)
    known = [NamedRecord(str(one.role_id), (one.name,), f"'{one.name}'", one) for one in roles]
    return access.pick(given, known, "role", "custody limit list lists them.")


@click.group("member")
def member() -> None:
    """The people of a workspace."""


@member.command("list")
@in_workspace
def list_command(access: Access) -> None:
    """List the members, and those who are invited."""
    members = access.client.members(access.workspace_id)
    invited = access.client.workspace_invitations(access.workspace_id)
    if wants_json():
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
@click.argument("email")
@click.option("--role", default="Signer", help="The name or id of a role of the workspace.")
@asking_in_workspace
def add_command(access: Access, email: str, role: str) -> None:
    """Invite a person, who becomes a member by accepting."""
    held, invite = role_of(access, role), access.client.invite_to_workspace
    request = access.request(invite, invited_email=email, role_id=held.role_id)
    rights = ", ".join(sorted(one.rule_name for one in held.perm)) or "nothing"
    aside(f"{request.invited_email} as {held.name} of {access.workspace.words}")
    aside(f"  The role may: {rights}")
    access.confirm("Send this invitation?")
    make_or_ask(access, invite, request, f"{request.invited_email} is invited.")


@member.command("remove")
@click.argument("given", metavar="MEMBER", help="An id, an e-mail address or a name.")
@click.option("--force", is_flag=True, help="Even where a vault keeps too few signers.")
@asking_in_workspace
def remove_command(access: Access, given: str, force: bool) -> None:
    """Remove a person from the workspace. Their keys stay in the vaults that hold them."""
    [one] = members_of(access, [given])
    aside(f"{full_name(one)} <{one.email}>, {one.role.name} of {access.workspace.words}")
    access.confirm("Remove this member?")
    remove = access.client.remove_user_from_workspace
    request = access.request(remove, user_uuid=one.uuid, force=force)
    make_or_ask(access, remove, request, f"{one.email} is no longer a member.")
