"""The members of a workspace: invited, added, given another role, removed; and leaving it oneself."""

from custody.schemas import users as wire
from custody.schemas.call import PERMISSION_WORDS
from custody.schemas.roles import ROLES, RoleDetails
from custody.server.console.context import PageContext
from custody.server.console.reviews import Facts
from custody.server.console.table import Row, entry_of, form, template_view
from custody.server.errors import Invalid

AT_ONCE = "It applies at once, to their pages and their programs."


def _roles(page: PageContext) -> list[RoleDetails]:
    """The form preselects the first."""
    return sorted(page.read(ROLES), key=lambda role: len(role.perm))


def colleagues(page: PageContext) -> list[wire.Member]:
    """Members of the organisation's other workspaces, where the person may see them, and not of this one."""
    workspace = page.workspace
    if not workspace.may("MANAGE_WORKSPACE") or not workspace.may("MANAGE_USERS"):
        return []
    here = {member.uuid for member in page.read(wire.MEMBERS)}
    members: dict[int, wire.Member] = {}
    for entry in workspace.organisation.workspaces.workspaces:
        permitted = {permission.rule_name for permission in entry.role.perm}
        if entry.workspace_info.uid != workspace.id and "MANAGE_USERS" in permitted:
            others = page.read(wire.MEMBERS, workspace_id=entry.workspace_info.uid)
            members |= {other.uuid: other for other in others if other.uuid not in here}
    return list(members.values())


_member = entry_of(wire.MEMBERS, "uuid", "There is no such member in this workspace.", name="user_uuid")


def _what_it_may_do(page: PageContext) -> Facts:
    """Of the role that is chosen. Raises Invalid."""
    wanted = page.number("role_id")
    for role in _roles(page):
        if role.role_id == wanted:
            rights = "; ".join(PERMISSION_WORDS[each.rule_name] for each in role.perm)
            return (("What it may do", rights or "nothing that needs a permission"),)
    raise Invalid.at("/role_id", "Choose one of the roles of this workspace.")


def _what_a_colleague_may_do(page: PageContext) -> Facts:
    """Raises Invalid for a person whom this one may not see."""
    if page.number("user_uuid") not in {each.uuid for each in colleagues(page)}:
        raise Invalid.at("/user_uuid", "Choose a person of your organisation who is no member yet.")
    return _what_it_may_do(page)


def _current_role(page: PageContext) -> Facts:
    """Raises NotFound."""
    return (("Current role", _member(page).role.name),)


members = template_view(
    "members/members.html", members=wire.MEMBERS, roles=_roles, invitations=wire.WORKSPACE_INVITATIONS,
    colleagues=colleagues,
)  # fmt: skip
member_page = template_view("members/member.html", member=_member, roles=_roles)
leaving = template_view("members/leave.html")


def _added(page: PageContext) -> dict[str, int]:
    ids = {"creator_workspace_id": page.workspace.id, "creator_org_uuid": page.workspace.organisation.org_id}
    return {"role_uid": page.number("role_id"), **ids}


_HERE = "/w/{workspace_id:int}/members"
_LEAVE = "/w/{workspace_id:int}/leave"
_ONE = _HERE + "/{user_uuid:int}"
ROWS = (
    Row("GET", _HERE, members),
    form(
        _HERE + "/invite", wire.INVITE_TO_WORKSPACE, members, "The invitation is on its way.", asks="Invite",
        warns="Anyone who reads that mailbox can accept it. The invitation is open for seven days.",
        bound=_what_it_may_do, given=lambda page: {"workspace_context": page.workspace.id},
    ),
    form(_HERE + "/revoke", wire.REVOKE_INVITE, members, "The invitation is taken back."),
    form(
        _HERE + "/add", wire.ADD_WORKSPACE_TO_USER, members, "The person is a member now.", asks="Add",
        bound=_what_a_colleague_may_do, given=_added,
    ),
    form(
        _LEAVE, wire.LEAVE_WORKSPACE, leaving, "You left the workspace.", to="/console/", asks="Leave",
        warns="Only an administrator can let you in again.", steps_up=True, has_page=True,
    ),
    Row("GET", _ONE, member_page),
    form(
        _ONE + "/role", wire.CHANGE_USER_ROLE, member_page, "The role is changed.", to="members",
        asks="Change the role", warns=AT_ONCE, beside=_current_role, bound=_what_it_may_do,
    ),
    form(
        _ONE + "/remove", wire.REMOVE_USER_FROM_WORKSPACE, member_page, "The member is removed.",
        to="members", asks="Remove", warns=AT_ONCE, beside=_current_role,
    ),
)  # fmt: skip
