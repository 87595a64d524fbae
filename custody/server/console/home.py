"""The person's workspaces and invitations; a workspace at a glance, its name and description, and making
another; and requests for an organisation, sent by a person and decided by an operator of the platform.
"""

from typing import Any

from starlette.responses import Response

from custody.common.pages.rendering import Live
from custody.schemas.changes import CHANGES
from custody.schemas.invitations import ACCEPT_INVITE, OWN_INVITATIONS
from custody.schemas.onboarding import (
    ONBOARDING_REQUESTS,
    REVIEW_ONBOARDING_REQUEST,
    SUBMIT_ONBOARDING_REQUEST,
    MonthlyVolume,
    OnboardingRequest,
)
from custody.schemas.proposals import PSBT
from custody.schemas.vaults import LIST_WALLETS, Vault
from custody.schemas.workspaces import CREATE_WORKSPACE, UPDATE_WORKSPACE
from custody.server.console.context import PageContext
from custody.server.console.table import Review, Row
from custody.server.domain.errors import Invalid, NotFound, PermissionDenied

# Waiting proposals and vaults on the overview; their own pages list all.
FIRST = 10


def workspaces(page: PageContext) -> Response:
    invitations = [] if page.caller.bound_to is not None else page.read(OWN_INVITATIONS)
    return page.render(
        "home/workspaces.html", section="home", workspaces=page.workspaces, invitations=invitations
    )


def invitation_page(page: PageContext) -> Response:
    """The page that the mail links to. Raises NotFound."""
    wanted = page.path_param("invite_id")
    for invitation in page.read(OWN_INVITATIONS):
        if invitation.invite_uid == wanted:
            return page.render("home/invitation.html", section="home", invitation=invitation)
    raise NotFound("No such invitation waits for you. It may have ended, or it is for another address.")


def answer_invitation(page: PageContext) -> Response:
    accept = page.form.ticked("accept")
    taken = page.act(ACCEPT_INVITE, invite_id=page.path_param("invite_id"), accept=accept)
    if accept:
        return page.redirect(
            f"/console/w/{taken.workspace_id}/", f"You are a member of {taken.workspace_name} now."
        )
    return page.redirect("/console/", "You declined the invitation.")


def overview(page: PageContext) -> Response:
    return page.render("home/overview.html", live_glance=_glance(page), **_shown(page))


def glance(page: PageContext) -> Response:
    return page.render_part(_glance(page), **_shown(page))


def _glance(page: PageContext) -> Live:
    return Live("glance", "home/glance.html", f"{page.workspace.path}/parts/glance")


def _shown(page: PageContext) -> dict[str, Any]:
    sees = page.workspace.may("VIEW_BALANCES", "PAYMENT_INIT", "PAYMENT_APPROVE", "MANAGE_WORKSPACE")
    found: list[Vault] = (
        page.read(LIST_WALLETS, workspace_id=page.workspace.id, limit=FIRST + 1) if sees else []
    )
    vaults = found[:FIRST]
    waiting = page.read(PSBT, workspace_id=page.workspace.id, status="PENDING", limit=FIRST) if sees else []
    return {
        "vaults": vaults,
        "are_all": len(vaults) == len(found) and not page.unreadable,
        "waiting": waiting,
        "total_sats": sum(vault.confirmed_sats for vault in vaults),
        "names": {vault.id: vault.name for vault in vaults},
        "changes": [
            each for each in page.read(CHANGES, workspace_id=page.workspace.id) if each.status == "PENDING"
        ],
    }


def workspace(page: PageContext) -> Response:
    if not page.workspace.may("MANAGE_WORKSPACE"):
        raise PermissionDenied("Only those who manage the workspace change it.")
    return page.render("workspace/workspace.html", networks=NETWORKS)


def review_name(page: PageContext) -> Review:
    facts = (
        ("Current name", page.workspace.name),
        ("New name", page.form.one("name")),
        ("Description", page.form.one("description")),
    )
    return Review("Change the workspace's name?", facts, "Change the name")


def rename(page: PageContext) -> Response:
    form, workspace = page.form, page.workspace
    page.act(
        UPDATE_WORKSPACE,
        workspace_id=workspace.id,
        name=form.one("name"),
        description=form.one("description"),
    )
    return page.redirect(f"{workspace.path}/workspace", "The name is changed.")


def review_new(page: PageContext) -> Review:
    facts = (
        ("Organisation", page.workspace.organisation.org_name),
        ("Name", page.form.one("new_name")),
        ("Description", page.form.one("new_description")),
        ("Network", dict(NETWORKS).get(page.form.one("network"), "")),
    )
    return Review("Make this workspace?", facts, "Make the workspace", "Its network cannot be changed later.")


def create(page: PageContext) -> Response:
    form, workspace = page.form, page.workspace
    made = page.act(
        CREATE_WORKSPACE,
        workspace_id=workspace.id,
        org_id=workspace.organisation.org_id,
        name=form.one("new_name"),
        description=form.one("new_description"),
        network=form.one("network"),
    )
    return page.redirect(
        f"/console/w/{made.workspace_info.uid}/", "The workspace is made. You administer it."
    )


_HERE = "/w/{workspace_id:int}/workspace"


PAGE = 20
VOLUMES = {
    MonthlyVolume.UNDER_10K: "up to 10,000 US dollars",
    MonthlyVolume.UNDER_100K: "10,000 to 100,000 US dollars",
    MonthlyVolume.UNDER_1M: "100,000 to 1 million US dollars",
    MonthlyVolume.UNDER_10M: "1 to 10 million US dollars",
    MonthlyVolume.OVER_10M: "more than 10 million US dollars",
}
NETWORKS = (("mainnet", "Bitcoin"), ("testnet", "a test network, whose coins are worth nothing"))
_FIELDS = (
    "first_name",
    "last_name",
    "work_email",
    "messaging_platform",
    "messaging_handle",
    "monthly_volume",
    "referral_source",
    "referral_source_detail",
    "org_name",
    "workspace_name",
    "network",
)
STATUSES = {"pending": "waits for the operator", "approved": "approved", "rejected": "declined"}


def onboarding(page: PageContext) -> Response:
    """An operator sees every request, others their own."""
    after = page.cursor("after")
    found = page.read(ONBOARDING_REQUESTS, limit=PAGE + 1, after=after)
    return page.render(
        "onboarding/onboarding.html",
        section="home",
        requests=found[:PAGE],
        next_after=page.following(found, PAGE, "uid"),
        volumes=VOLUMES,
        networks=NETWORKS,
        statuses=STATUSES,
    )


def _typed(page: PageContext) -> dict[str, Any]:
    return {name: page.form.one(name) for name in _FIELDS if page.form.one(name)}


def review_request(page: PageContext) -> Review:
    form = page.form
    try:
        volume = VOLUMES[MonthlyVolume(form.one("monthly_volume"))]
    except ValueError:
        raise Invalid.at("/monthly_volume", "Choose one of the list.") from None
    facts = (
        ("Organisation", form.one("org_name")),
        ("First workspace", form.one("workspace_name")),
        ("Network", dict(NETWORKS).get(form.one("network"), "")),
        ("Your name", f"{form.one('first_name')} {form.one('last_name')}"),
        ("Work address", form.one("work_email")),
        ("You are reached by", f"{form.one('messaging_platform')}: {form.one('messaging_handle')}"),
        ("It moves in a month", volume),
        ("You heard of us from", form.one("referral_source")),
    )
    return Review("Send this request?", facts, "Send", "An operator reads it and decides.")


def submit(page: PageContext) -> Response:
    page.act(SUBMIT_ONBOARDING_REQUEST, **_typed(page))
    return page.redirect("/console/onboarding", "Your request waits for an operator.")


def _one(page: PageContext) -> OnboardingRequest:
    """Raises NotFound."""
    number = page.path_param("uid")
    after = number - 1 if number > 1 else None
    found = page.read(ONBOARDING_REQUESTS, limit=1, after=after)
    if found and found[0].uid == number:
        return found[0]
    raise NotFound("There is no such request.")


def review_decision(page: PageContext) -> Review:
    found = _one(page)
    approves = page.form.one("decision") == "approve"
    facts = (
        ("Organisation", found.org_name),
        ("First workspace", f"{found.workspace_name}, on {found.network}"),
        ("Who asks", f"{found.first_name} {found.last_name}, {found.requester_email}"),
        ("Note to them", page.form.one("review_note")),
    )
    if approves:
        warning = "The organisation is founded, and the person who asks administers it."
        return Review("Approve this request?", facts, "Approve", warning)
    return Review("Decline this request?", facts, "Decline")


def decide(page: PageContext) -> Response:
    number = page.path_param("uid")
    page.act(
        REVIEW_ONBOARDING_REQUEST,
        ids={"uid": number},
        decision=page.form.one("decision"),
        review_note=page.form.one("review_note") or None,
    )
    return page.redirect("/console/onboarding", "The request is decided.")


ROWS = (
    Row("GET", "/", workspaces),
    Row("GET", "/invitations/{invite_id}", invitation_page),
    Row("POST", "/invitations/{invite_id}", answer_invitation, again=invitation_page, acts=(ACCEPT_INVITE,)),
    Row("GET", "/w/{workspace_id:int}/", overview),
    Row("GET", "/w/{workspace_id:int}/parts/glance", glance),
    Row("GET", _HERE, workspace),
    Row(
        "POST", _HERE + "/name", rename, again=workspace, review=review_name, steps_up=True,
        acts=(UPDATE_WORKSPACE,),
    ),
    Row(
        "POST", _HERE + "/new", create, again=workspace, review=review_new, steps_up=True,
        acts=(CREATE_WORKSPACE,),
    ),
    Row("GET", "/onboarding", onboarding),
    Row(
        "POST", "/onboarding", submit, again=onboarding, review=review_request,
        acts=(SUBMIT_ONBOARDING_REQUEST,),
    ),
    Row(
        "POST", "/onboarding/{uid:int}", decide, again=onboarding, review=review_decision, steps_up=True,
        acts=(REVIEW_ONBOARDING_REQUEST,),
    ),
)  # fmt: skip
