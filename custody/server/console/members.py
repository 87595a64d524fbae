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
from custody.server.console.context import PageContext
from custody.server.console.rendering import member_words
from custody.server.console.table import Review, Row
from custody.server.domain.errors import Invalid, NotFound

AT_ONCE = "It applies at once, to their pages and their programs."


def members(page: PageContext) -> Response:
    workspace = page.workspace
    return page.render(
        "members/members.html",
        members=members_of(page) if workspace.may("MANAGE_USERS") else [],
        roles=_roles(page),
        invitations=_invitations(page),
        colleagues=colleagues(page),
    )


def member_page(page: PageContext) -> Response:
    found = _member(page)
    return page.render("members/member.html", member=found, roles=_roles(page))


def members_of(page: PageContext) -> list[Member]:
    return page.read(MEMBERS, workspace_id=page.workspace.id)


def _roles(page: PageContext) -> list[RoleDetails]:
    if not page.workspace.may("MANAGE_ROLE", "MANAGE_USERS", "MANAGE_WORKSPACE"):
        return []
    found = page.read(ROLES, workspace_id=page.workspace.id)
    # The form preselects the first.
    return sorted(found, key=lambda role: len(role.perm))


def _invitations(page: PageContext) -> list[Invitation]:
    if not page.workspace.may("MANAGE_USERS"):
        return []
    return page.read(WORKSPACE_INVITATIONS, workspace_id=page.workspace.id)


def colleagues(page: PageContext) -> list[Member]:
    """Members of the organisation's other workspaces, where the person may see them, and not of this one."""
    workspace = page.workspace
    if not workspace.may("MANAGE_WORKSPACE") or not workspace.may("MANAGE_USERS"):
        return []
    here = {member.uuid for member in members_of(page)}
    found: dict[int, Member] = {}
    for entry in workspace.organisation.workspaces.workspaces:
        permitted = {permission.rule_name for permission in entry.role.perm}
        if entry.workspace_info.uid != workspace.id and "MANAGE_USERS" in permitted:
            others = page.read(MEMBERS, workspace_id=entry.workspace_info.uid)
            found |= {other.uuid: other for other in others if other.uuid not in here}
    return list(found.values())


def _member(page: PageContext) -> Member:
    """Raises NotFound."""
    for member in members_of(page):
        if member.uuid == page.path_param("user_id"):
            return member
    raise NotFound("There is no such member in this workspace.")


def _role(page: PageContext) -> RoleDetails:
    """Raises Invalid."""
    wanted = page.number("role_id")
    for role in _roles(page):
        if role.role_id == wanted:
            return role
    raise Invalid.at("/role_id", "Choose one of the roles of this workspace.")


def _rights(role: RoleDetails) -> str:
    return (
        "; ".join(PERMISSION_WORDS[each.rule_name] for each in role.perm) or "nothing that needs a permission"
    )


# --- inviting and adding ------------------------------------------------------------------------------------


def review_invitation(page: PageContext) -> Review:
    role = _role(page)
    facts = (
        ("E-mail address", page.form.one("invited_email")),
        ("Role", role.name),
        ("What it may do", _rights(role)),
    )
    warning = "Anyone who reads that mailbox can accept it. The invitation is open for seven days."
    return Review("Invite this person?", facts, "Invite", warning)


def invite(page: PageContext) -> Response:
    workspace = page.workspace
    page.act(
        INVITE_TO_WORKSPACE,
        invited_email=page.form.one("invited_email"),
        workspace_context=workspace.id,
        org_id=workspace.organisation.org_id,
        role_id=page.number("role_id"),
    )
    return page.redirect(f"{workspace.path}/members", "The invitation is on its way.")


def revoke_invitation(page: PageContext) -> Response:
    page.act(REVOKE_INVITE, workspace_id=page.workspace.id, invite_id=page.form.one("invite_id"))
    return page.redirect(f"{page.workspace.path}/members", "The invitation is taken back.")


def review_adding(page: PageContext) -> Review:
    wanted = page.number("user_id")
    names = [member_words(each) for each in colleagues(page) if each.uuid == wanted]
    if not names:
        raise Invalid.at("/user_id", "Choose a person of your organisation who is no member yet.")
    role = _role(page)
    facts = (("Person", names[0]), ("Role", role.name), ("What it may do", _rights(role)))
    return Review("Add this person?", facts, "Add")


def add(page: PageContext) -> Response:
    workspace = page.workspace
    page.act(
        ADD_WORKSPACE_TO_USER,
        workspace_id=workspace.id,
        user_uuid=page.number("user_id"),
        role_uid=page.number("role_id"),
        creator_workspace_id=workspace.id,
        creator_org_uuid=workspace.organisation.org_id,
    )
    return page.redirect(f"{workspace.path}/members", "The person is a member now.")


# --- one member ---------------------------------------------------------------------------------------------


def review_role(page: PageContext) -> Review:
    found = _member(page)
    role = _role(page)
    facts = (
        ("Member", member_words(found)),
        ("Current role", found.role.name),
        ("New role", role.name),
        ("What it may do", _rights(role)),
    )
    return Review("Give this member another role?", facts, "Change the role", AT_ONCE)


def change_role(page: PageContext) -> Response:
    page.act(
        CHANGE_USER_ROLE,
        workspace_id=page.workspace.id,
        user_uuid=page.path_param("user_id"),
        role_id=page.number("role_id"),
        force=page.form.ticked("force"),
    )
    return page.redirect(f"{page.workspace.path}/members", "The role is changed.")


def review_removal(page: PageContext) -> Review:
    found = _member(page)
    facts = (("Member", member_words(found)), ("Role", found.role.name))
    return Review("Remove this member?", facts, "Remove", AT_ONCE)


def remove(page: PageContext) -> Response:
    page.act(
        REMOVE_USER_FROM_WORKSPACE,
        workspace_id=page.workspace.id,
        user_uuid=page.path_param("user_id"),
        force=page.form.ticked("force"),
    )
    return page.redirect(f"{page.workspace.path}/members", "The member is removed.")


# --- oneself ------------------------------------------------------------------------------------------------


def review_leaving(page: PageContext) -> Review:
    workspace = page.workspace
    facts = (("Workspace", workspace.name), ("Organisation", workspace.organisation.org_name))
    return Review("Leave this workspace?", facts, "Leave", "Only an administrator can let you in again.")


def leave(page: PageContext) -> Response:
    page.act(LEAVE_WORKSPACE, workspace_id=page.workspace.id, force=page.form.ticked("force"))
    return page.redirect("/console/", "You left the workspace.")


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
