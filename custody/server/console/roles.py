"""Roles of a workspace: what they carry and how much each member may move; and one's own limits."""

from decimal import Decimal

from starlette.responses import Response

from custody.change_words import PERMISSION_WORDS
from custody.schemas.limits import MyLimits
from custody.schemas.users import PermissionName, RoleDetails
from custody.server.console.table import Review, Row
from custody.server.console.visit import Visit
from custody.server.domain.errors import Invalid, NotFound
from custody.text import SATS_PER_BTC

CYCLES = (("W", "Every week"), ("M", "Every month"))
PER_MILLE = 1000


def sats_of(text: str) -> int:
    """Of an amount in BTC that the platform wrote."""
    return int(Decimal(text) * SATS_PER_BTC)


def cycle_words(period: str, day: int) -> str:
    """When the counters begin anew."""
    if period == "W":
        names = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
        return f"each week, from {names[day - 1]}"
    return f"each month, from day {day}"


def roles(visit: Visit) -> Response:
    return visit.page(
        "roles/roles.html", here="roles", roles=_roles(visit), sats_of=sats_of, cycle_words=cycle_words
    )


def new_role_page(visit: Visit) -> Response:
    return visit.page("roles/new.html", here="roles", permissions=PERMISSION_WORDS, cycles=CYCLES)


def role_page(visit: Visit) -> Response:
    role = _role(visit)
    return visit.page(
        "roles/role.html",
        here="roles",
        role=role,
        held={permission.rule_name for permission in role.perm},
        permissions=PERMISSION_WORDS,
        cycles=CYCLES,
        sats_of=sats_of,
        cycle_words=cycle_words,
    )


def my_limits(visit: Visit) -> Response:
    found: MyLimits = visit.get("get-my-limits", workspace_id=visit.here.id)
    limit, used = sats_of(found.limit), sats_of(found.used)
    return visit.page(
        "roles/limits.html",
        here="limits",
        limits=found,
        limit_sats=limit,
        used_sats=used,
        left_sats=sats_of(found.unused),
        used_per_mille=min(PER_MILLE, used * PER_MILLE // limit) if limit else 0,
        cycle=cycle_words(found.cycle_period, found.cycle_day),
    )


def _roles(visit: Visit) -> list[RoleDetails]:
    found: list[RoleDetails] = visit.get("get-roles-and-perms-detailed", workspace_id=visit.here.id)
    return found


def _role(visit: Visit) -> RoleDetails:
    """Raises NotFound."""
    for role in _roles(visit):
        if role.role_id == visit.path_param("role_id"):
            return role
    raise NotFound("There is no such role in this workspace.")


def _holders(role: RoleDetails) -> str:
    return f"It counts at once, for {role.members} {'member' if role.members == 1 else 'members'}."


def _cycle(visit: Visit) -> tuple[str, int]:
    return visit.form.one("cycle_period"), visit.number("cycle_day")


def _limit_facts(visit: Visit, name: str) -> tuple[tuple[str, object], ...]:
    period, day = _cycle(visit)
    if period not in dict(CYCLES):
        raise Invalid.at("/cycle_period", "Choose one of the list.")
    limit = visit.form.one(name)
    return (
        ("Each member may move", f"{limit} BTC"),
        ("The sum begins anew", cycle_words(period, min(day, 7) if period == "W" else day)),
    )


# --- making, naming, deleting -------------------------------------------------------------------------------


def _wanted(visit: Visit) -> list[PermissionName]:
    """Raises Invalid."""
    try:
        return [PermissionName(each) for each in visit.form.every("permissions")]
    except ValueError:
        raise Invalid.at("/permissions", "Choose permissions of the list.") from None


def review_new(visit: Visit) -> Review:
    allowed = "; ".join(PERMISSION_WORDS[each] for each in _wanted(visit)) or "nothing"
    facts = (
        ("Name", visit.form.one("name")),
        ("It allows", allowed),
        *_limit_facts(visit, "transaction_limit"),
    )
    return Review("Make this role?", facts, "Make the role")


def create(visit: Visit) -> Response:
    period, day = _cycle(visit)
    visit.post(
        "create-role",
        workspace_id=visit.here.id,
        name=visit.form.one("name"),
        description=visit.form.one("description"),
        permissions=_wanted(visit),
        transaction_limit=visit.form.one("transaction_limit"),
        cycle_period=period,
        cycle_day=day,
    )
    return visit.go(f"{visit.here.path}/roles", "The role is there.")


def review_name(visit: Visit) -> Review:
    facts = (
        ("Name until now", _role(visit).name),
        ("New name", visit.form.one("name")),
        ("Description", visit.form.one("description")),
    )
    return Review("Change this role's name?", facts, "Change the name")


def rename(visit: Visit) -> Response:
    form = visit.form
    ids = {"workspace_id": visit.here.id, "role_id": visit.path_param("role_id")}
    visit.post("update-role", **ids, name=form.one("name"), description=form.one("description"))
    return visit.go(visit.request.url.path.removesuffix("/name"), "The name is changed.")


def review_deletion(visit: Visit) -> Review:
    return Review("Delete this role?", (("Role", _role(visit).name),), "Delete")


def delete(visit: Visit) -> Response:
    visit.post("delete-role", workspace_id=visit.here.id, role_id=visit.path_param("role_id"))
    return visit.go(f"{visit.here.path}/roles", "The role is deleted.")


# --- what it carries ----------------------------------------------------------------------------------------


def _permission(visit: Visit) -> PermissionName:
    try:
        return PermissionName(visit.form.one("permission"))
    except ValueError:
        raise Invalid.at("/permission", "Choose a permission of the list.") from None


def review_permission(visit: Visit) -> Review:
    role, words = _role(visit), PERMISSION_WORDS[_permission(visit)]
    if visit.form.one("do") == "take":
        return Review(
            "Take this permission away?",
            (("Role", role.name), ("Permission", words)),
            "Take it away",
            _holders(role),
        )
    return Review(
        "Add this permission?", (("Role", role.name), ("Permission", words)), "Add it", _holders(role)
    )


def change_permission(visit: Visit) -> Response:
    takes = visit.form.one("do") == "take"
    body = {
        "workspace_id": visit.here.id,
        "role_id": visit.path_param("role_id"),
        "rule_name": _permission(visit),
    }
    if takes:
        visit.post("remove-perm-from-role", **body, force=visit.form.ticked("force"))
    else:
        visit.post("add-perm-to-role", **body)
    done = "The permission is taken away." if takes else "The permission is added."
    return visit.go(visit.request.url.path.removesuffix("/permission"), done)


def review_limit(visit: Visit) -> Review:
    role = _role(visit)
    before = (("Until now", f"{role.transaction_limit} BTC"),) if role.transaction_limit else ()
    return Review(
        "Change this limit?",
        (("Role", role.name), *before, *_limit_facts(visit, "new_transaction_limit")),
        "Change the limit",
        _holders(role),
    )


def change_limit(visit: Visit) -> Response:
    period, day = _cycle(visit)
    visit.post(
        "update-role-policies",
        workspace_id=visit.here.id,
        role_id=visit.path_param("role_id"),
        new_transaction_limit=visit.form.one("new_transaction_limit"),
        cycle_period=period,
        cycle_day=day,
    )
    return visit.go(visit.request.url.path.removesuffix("/limit"), "The limit is changed.")


_HERE = "/w/{workspace_id:int}/roles"
_ONE = _HERE + "/{role_id:int}"
ROWS = (
    Row("GET", _HERE, roles),
    Row("GET", _HERE + "/new", new_role_page),
    Row("POST", _HERE + "/new", create, again=new_role_page, review=review_new, steps_up=True),
    Row("GET", _ONE, role_page),
    Row("POST", _ONE + "/name", rename, again=role_page, review=review_name, steps_up=True),
    Row("POST", _ONE + "/delete", delete, again=role_page, review=review_deletion, steps_up=True),
    Row(
        "POST",
        _ONE + "/permission",
        change_permission,
        again=role_page,
        review=review_permission,
        steps_up=True,
    ),
    Row("POST", _ONE + "/limit", change_limit, again=role_page, review=review_limit, steps_up=True),
    Row("GET", "/w/{workspace_id:int}/limits", my_limits),
)
