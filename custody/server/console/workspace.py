"""The workspace's name and description, and making another workspace."""

from starlette.responses import Response

from custody.server.console.onboarding import NETWORKS
from custody.server.console.table import Review, Row
from custody.server.console.visit import Visit
from custody.server.domain.errors import PermissionDenied


def workspace(visit: Visit) -> Response:
    if not visit.here.may("MANAGE_WORKSPACE"):
        raise PermissionDenied("Only those who manage the workspace change it.")
    return visit.page("workspace/workspace.html", here="workspace", networks=NETWORKS)


def review_name(visit: Visit) -> Review:
    facts = (
        ("Current name", visit.here.name),
        ("New name", visit.form.one("name")),
        ("Description", visit.form.one("description")),
    )
    return Review("Change the workspace's name?", facts, "Change the name")


def rename(visit: Visit) -> Response:
    form, place = visit.form, visit.here
    visit.post(
        "update-workspace",
        workspace_id=place.id,
        name=form.one("name"),
        description=form.one("description"),
    )
    return visit.go(f"{place.path}/workspace", "The name is changed.")


def review_new(visit: Visit) -> Review:
    facts = (
        ("Organisation", visit.here.organisation.org_name),
        ("Name", visit.form.one("new_name")),
        ("Description", visit.form.one("new_description")),
        ("Network", dict(NETWORKS).get(visit.form.one("network"), "")),
    )
    return Review("Make this workspace?", facts, "Make the workspace", "Its network cannot be changed later.")


def create(visit: Visit) -> Response:
    form, place = visit.form, visit.here
    made = visit.post(
        "create-workspace",
        workspace_id=place.id,
        org_id=place.organisation.org_id,
        name=form.one("new_name"),
        description=form.one("new_description"),
        network=form.one("network"),
    )
    return visit.go(f"/console/w/{made.workspace_info.uid}/", "The workspace is made. You administer it.")


_HERE = "/w/{workspace_id:int}/workspace"
ROWS = (
    Row("GET", _HERE, workspace),
    Row("POST", _HERE + "/name", rename, again=workspace, review=review_name, steps_up=True),
    Row("POST", _HERE + "/new", create, again=workspace, review=review_new, steps_up=True),
)
