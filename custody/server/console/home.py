"""The person's workspaces and invitations; a workspace at a glance, its name and description, and making
another; and requests for an organisation, sent by a person and decided by an operator of the platform.
"""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from custody.schemas.changes import CHANGES
from custody.schemas.onboarding import (
    ONBOARDING_REQUESTS,
    REVIEW_ONBOARDING_REQUEST,
    SUBMIT_ONBOARDING_REQUEST,
    MonthlyVolume,
)
from custody.schemas.proposals import PROPOSAL_READERS, PSBT, Proposal, ProposalStatus
from custody.schemas.users import ACCEPT_INVITE, CREATE_WORKSPACE, OWN_INVITATIONS, UPDATE_WORKSPACE
from custody.schemas.vaults import LIST_WALLETS, Vault
from custody.server.console.context import PageContext
from custody.server.console.reviews import Review
from custody.server.console.table import Row, entry_of, form, live, template_view
from custody.server.errors import Invalid
from custody.server.keys.calls import active_key
from custody.server.proposals.reading import newest

# Of the vaults, waiting proposals and others on the overview; their own pages list all.
FIRST = 10


workspaces = template_view(
    "home/workspaces.html", section="home", workspaces=lambda page: page.workspaces,
    invitations=lambda page: [] if page.caller.bound_to is not None else page.read(OWN_INVITATIONS),
)  # fmt: skip
# The page that the mail links to.
invitation_page = template_view(
    "home/invitation.html", section="home", invitation=entry_of(
        OWN_INVITATIONS, "invite_uid", name="invite_id",
        words="No such invitation waits for you. You may have answered it: Workspaces lists yours. Or it has "
        "ended, or was mailed to another address of yours: sign out, and sign in with that address.",
    ),
)  # fmt: skip


def answer_invitation(page: PageContext) -> Response:
    accept = page.form.ticked("accept")
    taken = page.act(ACCEPT_INVITE, invite_id=page.path_param("invite_id"), accept=accept)
    if accept:
        return page.redirect(
            f"/console/w/{taken.workspace_id}/", f"You are a member of {taken.workspace_name} now."
        )
    return page.redirect("/console/", "You declined the invitation.")


def _shown(page: PageContext) -> dict[str, Any]:
    sees = page.workspace.may(*PROPOSAL_READERS)
    listed: list[Vault] = page.read(LIST_WALLETS, limit=FIRST + 1) if sees else []
    vaults = listed[:FIRST]
    are_all = len(vaults) == len(listed) and not page.unreadable
    proposals: list[Proposal] = []
    lacks_device = False
    with page.reading() as ctx:
        if sees:
            proposals = page.readable(newest(ctx.enter(PSBT, page.workspace.id), FIRST))
        if page.workspace.may("PAYMENT_APPROVE"):
            network = page.workspace.entry.workspace_info.net
            lacks_device = active_key(ctx.db, page.caller.user_id, network) is None
    return {
        "lacks_device": lacks_device,
        "vaults": vaults,
        "are_all": are_all,
        "waiting": [each for each in proposals if each.status is ProposalStatus.PENDING],
        "payments": [each for each in proposals if each.status is not ProposalStatus.PENDING],
        "changes": [each for each in page.read(CHANGES) if each.status == "PENDING"],
    }


def workspace(page: PageContext) -> Response:
    page.workspace.require("MANAGE_WORKSPACE")
    return page.render("workspace/workspace.html", networks=NETWORKS)


# --- an organisation of one's own ---------------------------------------------------------------------------

VOLUMES: Mapping[str, str] = {
    MonthlyVolume.UNDER_10K: "up to 10,000 US dollars",
    MonthlyVolume.UNDER_100K: "10,000 to 100,000 US dollars",
    MonthlyVolume.UNDER_1M: "100,000 to 1 million US dollars",
    MonthlyVolume.UNDER_10M: "1 to 10 million US dollars",
    MonthlyVolume.OVER_10M: "more than 10 million US dollars",
}
NETWORKS = (("mainnet", "Bitcoin"), ("testnet", "a test network, whose coins are worth nothing"))
STATUSES = {"pending": "waits for the operator", "approved": "approved", "rejected": "declined"}


# An operator sees every request, others their own.
onboarding = template_view(
    "onboarding/onboarding.html", section="home", volumes=VOLUMES, networks=NETWORKS, statuses=STATUSES,
    requests=lambda page: page.read_page(ONBOARDING_REQUESTS),
)  # fmt: skip


def review_request(page: PageContext) -> Review:
    form = page.form
    volume = VOLUMES.get(form.one("monthly_volume"))
    if volume is None:
        raise Invalid.at("/monthly_volume", "Choose one of the list.")
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


def review_decision(page: PageContext) -> Review:
    after = page.path_param("uid") - 1
    listed = page.read(ONBOARDING_REQUESTS, limit=1, after=after if after > 0 else None)
    request = page.one_of(listed, "uid", "uid", "There is no such request.")
    approves = page.form.one("decision") == "approve"
    facts = (
        ("Organisation", request.org_name),
        ("First workspace", f"{request.workspace_name}, on {request.network}"),
        ("Who asks", f"{request.first_name} {request.last_name}, {request.requester_email}"),
        ("Note to them", page.form.one("review_note")),
    )
    if approves:
        warning = "The organisation is founded, and the person who asks administers it."
        return Review("Approve this request?", facts, "Approve", warning)
    return Review("Decline this request?", facts, "Decline")


_HERE = "/w/{workspace_id:int}/workspace"
ROWS = (
    Row("GET", "/", workspaces),
    Row(
        "POST", "/invitations/{invite_id}", answer_invitation, again=invitation_page, has_page=True,
        acts=(ACCEPT_INVITE,),
    ),
    *live(
        "/w/{workspace_id:int}/", "/w/{workspace_id:int}/parts/glance",
        ("home/overview.html", "home/glance.html"), _shown,
    ),
    Row("GET", _HERE, workspace),
    form(
        _HERE + "/name", UPDATE_WORKSPACE, workspace, "The name is changed.", asks="Change the name",
        steps_up=True,
    ),
    form(
        _HERE + "/checks", UPDATE_WORKSPACE, workspace, "The key checks are changed.",
        asks="Change the key checks", steps_up=True,
    ),
    form(
        _HERE + "/new", CREATE_WORKSPACE, workspace, "The workspace is made. You administer it.",
        to="/console/w/{0.workspace_info.uid}/", asks="Make the workspace",
        # The page has a form of the workspace's own name, too.
        given=lambda page: {name: page.form.one(f"new_{name}") for name in ("name", "description")},
        warns="Its network cannot be changed later.",
    ),
    form(
        "/onboarding", SUBMIT_ONBOARDING_REQUEST, onboarding, "Your request waits for an operator.",
        to="/console/onboarding", has_page=True, review=review_request,
        given=lambda page: dict.fromkeys(name for name in page.form.values if not page.form.one(name)),
    ),
    form(
        "/onboarding/{uid:int}", REVIEW_ONBOARDING_REQUEST, onboarding, "The request is decided.",
        review=review_decision, steps_up=True, optional=("review_note",),
    ),
)  # fmt: skip
