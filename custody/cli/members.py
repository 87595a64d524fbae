"""``custody member list``, ``add`` and ``remove``; and ``custody workspace set``, what their devices owe."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from custody.cli.access import Access, Command, asking_in_workspace, in_workspace
from custody.cli.changes import make_or_ask
from custody.cli.common import give, wants_json
from custody.common.naming import NamedRecord
from custody.common.terminal import answer, aside, say, table
from custody.common.text import count, day_words

if TYPE_CHECKING:
    from custody.schemas.roles import RoleDetails
    from custody.schemas.users import Member


def full_name(one: "Member") -> str:
    return f"{one.first_name.value or ''} {one.surname.value or ''}".strip() or "(no name)"


def members_of(access: Access, given: Iterable[str]) -> "list[Member]":
    """Each by an id, an e-mail address or a name. Raises Stop."""
    known = [
        NamedRecord(str(one.uuid), (one.email, full_name(one)), f"{full_name(one)} <{one.email}>", one)
        for one in access.client.members(access.workspace_id)
    ]
    return [access.pick(one, known, "member", "custody member list lists them.") for one in given]


def id_of(access: Access, given: str | None) -> int | None:
    """Of the member, where one is named. Raises Stop."""
    return None if given is None else members_of(access, [given])[0].uuid


def of_person_and_days(command: Command) -> Command:
    """A list with the filters ``by``, for `id_of`, and ``from_day`` and ``to_day``."""
    to = click.option("--to", "to_day", metavar="DAY", help="Until the end of this day, in UTC.")
    since = click.option("--from", "from_day", metavar="DAY", help="From this day on, in UTC: 2026-05-01.")
    by = click.option("--by", metavar="MEMBER", help="Of this person: an id, an e-mail address or a name.")
    return by(since(to(command)))


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
        say(f"Invited: {offer.invited_email} as {offer.role_name}, until {day_words(offer.expires_at)}.")


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
@click.option("--force", is_flag=True, help="Even where a vault is left with too few signers.")
@asking_in_workspace
def remove_command(access: Access, given: str, force: bool) -> None:
    """Remove a person from the workspace. Their keys stay in the vaults that hold them."""
    [one] = members_of(access, [given])
    aside(f"{full_name(one)} <{one.email}>, {one.role.name} of {access.workspace.words}")
    access.confirm("Remove this member?")
    remove = access.client.remove_user_from_workspace
    request = access.request(remove, user_uuid=one.uuid, force=force)
    make_or_ask(access, remove, request, f"{one.email} is no longer a member.")


@click.group("workspace")
def workspace() -> None:
    """What holds in a whole workspace."""


@workspace.command("set")
@click.option("--key-check-months", type=int, required=True, help="0: no device has to sign anything.")
@asking_in_workspace
def set_command(access: Access, key_check_months: int) -> None:
    """Have the device of each signer sign something once in so many months."""
    update = access.client.update_workspace
    request = access.request(update, key_check_months=key_check_months)
    often = f"once in {count(key_check_months, 'month', 'months')}" if key_check_months else "no more"
    access.confirm(f"Is each device of {access.workspace.words} to be checked {often}?")
    give(access.make(update, request), f"Each signer's device is checked {often}.")
