"""The members of a workspace: invited, added, given another role, removed; and leaving it oneself."""

from starlette.responses import Response

from custody.common.change_words import PERMISSION_WORDS
from custody.schemas.invitations import (
    INVITE_TO_WORKSPACE,
    REVOKE_INVITE,
    WORKSPACE_INVITATIONS,
    Invitation,
)
from custody.schemas.members import (
    ADD_WORKSPACE_TO_USER,
    CHANGE_USER_ROLE,
    LEAVE_WORKSPACE,
    MEMBERS,
    REMOVE_USER_FROM_WORKSPACE,
    Member,
)
from custody.schemas.roles import ROLES, RoleDetails
from custody.server.console.rendering import member_words
from custody.server.console.table import Review, Row
from custody.server.console.visit import Visit
from custody.server.domain.errors import Invalid, NotFound

AT_ONCE = "It applies at once, to their pages and their programs."


def members(visit: Visit) -> Response:
    place = visit.here
    return visit.page(
        "members/members.html",
        here="members",
        members=members_of(visit) if place.may("MANAGE_USERS") else [],
        roles=_roles(visit),
        invitations=_invitations(visit),
        colleagues=colleagues(visit),
    )


def member_page(visit: Visit) -> Response:
    found = _member(visit)
    return visit.page("members/member.html", here="members", member=found, roles=_roles(visit))


def members_of(visit: Visit) -> list[Member]:
    return visit.ask(MEMBERS, workspace_id=visit.here.id)


def _roles(visit: Visit) -> list[RoleDetails]:
    if not visit.here.may("MANAGE_ROLE", "MANAGE_USERS", "MANAGE_WORKSPACE"):
        return []
    found = visit.ask(ROLES, workspace_id=visit.here.id)
    # The form preselects the first.
    return sorted(found, key=lambda role: len(role.perm))


def _invitations(visit: Visit) -> list[Invitation]:
    if not visit.here.may("MANAGE_USERS"):
        return []
    return visit.ask(WORKSPACE_INVITATIONS, workspace_id=visit.here.id)


def colleagues(visit: Visit) -> list[Member]:
    """Members of the organisation's other workspaces, where the person may see them, and not of this one."""
    place = visit.here
    if not place.may("MANAGE_WORKSPACE") or not place.may("MANAGE_USERS"):
        return []
    here = {member.uuid for member in members_of(visit)}
    found: dict[int, Member] = {}
    for entry in place.organisation.workspaces.workspaces:
        permitted = {permission.rule_name for permission in entry.role.perm}
        if entry.workspace_info.uid != place.id and "MANAGE_USERS" in permitted:
            others = visit.ask(MEMBERS, workspace_id=entry.workspace_info.uid)
            found |= {other.uuid: other for other in others if other.uuid not in here}
    return list(found.values())


def _member(visit: Visit) -> Member:
    """Raises NotFound."""
    for member in members_of(visit):
        if member.uuid == visit.path_param("user_id"):
            return member
    raise NotFound("There is no such member in this workspace.")


def _role(visit: Visit) -> RoleDetails:
    """Raises Invalid."""
    wanted = visit.number("role_id")
    for role in _roles(visit):
        if role.role_id == wanted:
            return role
    raise Invalid.at("/role_id", "Choose one of the roles of this workspace.")


def _rights(role: RoleDetails) -> str:
    return (
        "; ".join(PERMISSION_WORDS[each.rule_name] for each in role.perm) or "nothing that needs a permission"
    )


# --- inviting and adding ------------------------------------------------------------------------------------


def review_invitation(visit: Visit) -> Review:
    role = _role(visit)
    facts = (
        ("E-mail address", visit.form.one("invited_email")),
        ("Role", role.name),
        ("What it may do", _rights(role)),
    )
    warning = "Anyone who reads that mailbox can accept it. The invitation is open for seven days."
    return Review("Invite this person?", facts, "Invite", warning)


def invite(visit: Visit) -> Response:
    place = visit.here
    visit.act(
        INVITE_TO_WORKSPACE,
        invited_email=visit.form.one("invited_email"),
        workspace_context=place.id,
        org_id=place.organisation.org_id,
        role_id=visit.number("role_id"),
    )
    return visit.go(f"{place.path}/members", "The invitation is on its way.")


def revoke_invitation(visit: Visit) -> Response:
    visit.act(REVOKE_INVITE, workspace_id=visit.here.id, invite_id=visit.form.one("invite_id"))
    return visit.go(f"{visit.here.path}/members", "The invitation is taken back.")


def review_adding(visit: Visit) -> Review:
    wanted = visit.number("user_id")
    names = [member_words(each) for each in colleagues(visit) if each.uuid == wanted]
    if not names:
        raise Invalid.at("/user_id", "Choose a person of your organisation who is no member yet.")
    role = _role(visit)
    facts = (("Person", names[0]), ("Role", role.name), ("What it may do", _rights(role)))
    return Review("Add this person?", facts, "Add")


def add(visit: Visit) -> Response:
    place = visit.here
    visit.act(
        ADD_WORKSPACE_TO_USER,
        workspace_id=place.id,
        user_uuid=visit.number("user_id"),
        role_uid=visit.number("role_id"),
        creator_workspace_id=place.id,
        creator_org_uuid=place.organisation.org_id,
    )
    return visit.go(f"{place.path}/members", "The person is a member now.")


# --- one member ---------------------------------------------------------------------------------------------


def review_role(visit: Visit) -> Review:
    found = _member(visit)
    role = _role(visit)
    facts = (
        ("Member", member_words(found)),
        ("Current role", found.role.name),
        ("New role", role.name),
        ("What it may do", _rights(role)),
    )
    return Review("Give this member another role?", facts, "Change the role", AT_ONCE)


def change_role(visit: Visit) -> Response:
    visit.act(
        CHANGE_USER_ROLE,
        workspace_id=visit.here.id,
        user_uuid=visit.path_param("user_id"),
        role_id=visit.number("role_id"),
        force=visit.form.ticked("force"),
    )
    return visit.go(f"{visit.here.path}/members", "The role is changed.")


def review_removal(visit: Visit) -> Review:
    found = _member(visit)
    facts = (("Member", member_words(found)), ("Role", found.role.name))
    return Review("Remove this member?", facts, "Remove", AT_ONCE)


def remove(visit: Visit) -> Response:
    visit.act(
        REMOVE_USER_FROM_WORKSPACE,
        workspace_id=visit.here.id,
        user_uuid=visit.path_param("user_id"),
        force=visit.form.ticked("force"),
    )
    return visit.go(f"{visit.here.path}/members", "The member is removed.")


# --- oneself ------------------------------------------------------------------------------------------------


def review_leaving(visit: Visit) -> Review:
    place = visit.here
    facts = (("Workspace", place.name), ("Organisation", place.organisation.org_name))
    return Review("Leave this workspace?", facts, "Leave", "Only an administrator can let you in again.")


def leave(visit: Visit) -> Response:
    visit.act(LEAVE_WORKSPACE, workspace_id=visit.here.id, force=visit.form.ticked("force"))
    return visit.go("/console/", "You left the workspace.")


_HERE = "/w/{workspace_id:int}/members"
_ONE = _HERE + "/{user_id:int}"
ROWS = (
    Row("GET", _HERE, members),
    Row(
        "POST", _HERE + "/invite", invite, again=members, review=review_invitation, steps_up=True,
        acts=(INVITE_TO_WORKSPACE,),
    ),
    Row("POST", _HERE + "/revoke", revoke_invitation, again=members, acts=(REVOKE_INVITE,)),
    Row(
        "POST", _HERE + "/add", add, again=members, review=review_adding, steps_up=True,
        acts=(ADD_WORKSPACE_TO_USER,),
    ),
    Row(
        "POST", _HERE + "/leave", leave, again=members, review=review_leaving, steps_up=True,
        acts=(LEAVE_WORKSPACE,),
    ),
    Row("GET", _ONE, member_page),
    Row(
        "POST", _ONE + "/role", change_role, again=member_page, review=review_role, steps_up=True,
        acts=(CHANGE_USER_ROLE,),
    ),
    Row(
        "POST", _ONE + "/remove", remove, again=member_page, review=review_removal, steps_up=True,
        acts=(REMOVE_USER_FROM_WORKSPACE,),
    ),
)  # fmt: skip
