"""Requests for an organisation: sent by a person, decided by an operator of the platform."""

from typing import Any

from starlette.responses import Response

from custody.schemas.invitations import MonthlyVolume, OnboardingRequest
from custody.server.console.table import Review, Row
from custody.server.console.visit import Visit
from custody.server.domain.errors import Invalid, NotFound

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


def onboarding(visit: Visit) -> Response:
    """An operator sees every request, others their own."""
    after = visit.place_in_list("after")
    found: list[OnboardingRequest] = visit.get("onboarding-requests", limit=PAGE + 1, after=after)
    return visit.page(
        "onboarding/onboarding.html",
        here="home",
        requests=found[:PAGE],
        next_after=found[PAGE - 1].uid if len(found) > PAGE else 0,
        volumes=VOLUMES,
        networks=NETWORKS,
        statuses=STATUSES,
    )


def _typed(visit: Visit) -> dict[str, Any]:
    return {name: visit.form.one(name) for name in _FIELDS if visit.form.one(name)}


def review_request(visit: Visit) -> Review:
    form = visit.form
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


def submit(visit: Visit) -> Response:
    visit.post("onboarding-requests", **_typed(visit))
    return visit.go("/console/onboarding", "Your request waits for an operator.")


def _one(visit: Visit) -> OnboardingRequest:
    """Raises NotFound."""
    number = visit.path_param("uid")
    after = number - 1 if number > 1 else None
    found: list[OnboardingRequest] = visit.get("onboarding-requests", limit=1, after=after)
    if found and found[0].uid == number:
        return found[0]
    raise NotFound("There is no such request.")


def review_decision(visit: Visit) -> Review:
    found = _one(visit)
    approves = visit.form.one("decision") == "approve"
    facts = (
        ("Organisation", found.org_name),
        ("First workspace", f"{found.workspace_name}, on {found.network}"),
        ("Who asks", f"{found.first_name} {found.last_name}, {found.requester_email}"),
        ("Note to them", visit.form.one("review_note")),
    )
    if approves:
        warning = "The organisation is founded, and the person who asks administers it."
        return Review("Approve this request?", facts, "Approve", warning)
    return Review("Decline this request?", facts, "Decline")


def decide(visit: Visit) -> Response:
    number = visit.path_param("uid")
    visit.post(
        "/api/v1/onboarding-requests/{uid}/review",
        ids={"uid": number},
        decision=visit.form.one("decision"),
        review_note=visit.form.one("review_note") or None,
    )
    return visit.go("/console/onboarding", "The request is decided.")


ROWS = (
    Row("GET", "/onboarding", onboarding),
    Row("POST", "/onboarding", submit, again=onboarding, review=review_request),
    Row("POST", "/onboarding/{uid:int}", decide, again=onboarding, review=review_decision, steps_up=True),
)
