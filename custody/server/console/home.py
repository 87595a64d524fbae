"""The person's workspaces and invitations, and a workspace at a glance."""

from typing import Any

from starlette.responses import Response

from custody.pages.rendering import Live
from custody.schemas.vaults import Vault
from custody.server.console.table import Row
from custody.server.console.visit import Visit
from custody.server.domain.errors import NotFound

# Waiting proposals and vaults on the overview; their own pages list all.
FIRST = 10


def workspaces(visit: Visit) -> Response:

    invitations = [] if visit.caller.bound_to is not None else visit.get("get-invites-pending")
    return visit.page("home/workspaces.html", here="home", places=visit.places, invitations=invitations)


def invitation_page(visit: Visit) -> Response:
    """The page that the mail links to. Raises NotFound."""
    wanted = visit.path_param("invite_id")
    for invitation in visit.get("get-invites-pending"):
        if invitation.invite_uid == wanted:
            return visit.page("home/invitation.html", here="home", invitation=invitation)
    raise NotFound("No such invitation waits for you. It may have ended, or it is for another address.")


def answer_invitation(visit: Visit) -> Response:
    accept = visit.form.ticked("accept")
    taken = visit.get("accept-invite", invite_id=visit.path_param("invite_id"), accept=accept)
    if accept:
        return visit.go(
            f"/console/w/{taken.workspace_id}/", f"You are a member of {taken.workspace_name} now."
        )
    return visit.go("/console/", "You declined the invitation.")


def overview(visit: Visit) -> Response:
    return visit.page("home/overview.html", here="", live_glance=_glance(visit), **_shown(visit))


def glance(visit: Visit) -> Response:
    return visit.part(_glance(visit), **_shown(visit))


def _glance(visit: Visit) -> Live:
    return Live("glance", "home/glance.html", f"{visit.here.path}/parts/glance")


def _shown(visit: Visit) -> dict[str, Any]:
    sees = visit.here.may("VIEW_BALANCES", "PAYMENT_INIT", "PAYMENT_APPROVE", "MANAGE_WORKSPACE")
    found: list[Vault] = (
        visit.get("list-wallets", workspace_id=visit.here.id, limit=FIRST + 1) if sees else []
    )
    vaults = found[:FIRST]
    waiting = visit.get("psbt", workspace_id=visit.here.id, status="PENDING", limit=FIRST) if sees else []
    return {
        "vaults": vaults,
        "are_all": len(vaults) == len(found),
        "waiting": waiting,
        "total_sats": sum(vault.confirmed_sats for vault in vaults),
        "names": {vault.id: vault.name for vault in vaults},
        "changes": [
            each for each in visit.get("changes", workspace_id=visit.here.id) if each.status == "PENDING"
        ],
    }


ROWS = (
    Row("GET", "/", workspaces),
    Row("GET", "/invitations/{invite_id}", invitation_page),
    Row("POST", "/invitations/{invite_id}", answer_invitation, again=invitation_page),
    Row("GET", "/w/{workspace_id:int}/", overview),
    Row("GET", "/w/{workspace_id:int}/parts/glance", glance),
)
