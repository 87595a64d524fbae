"""``custody admin requests``, ``approve`` and ``reject``: requests for organisations."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from custody.cli.common import give, give_list, json_option, wants_json
from custody.common.terminal import aside, say
from custody.server.cli.admin import admin
from custody.server.cli.common import CHAINS, MAX_INT64, platform_at, state_option
from multisig import Network

if TYPE_CHECKING:
    from custody.schemas.onboarding import OnboardingRequest


# A copy of `custody.schemas.onboarding.OnboardingStatus`: help loads no schema, and a test compares them.
STATUSES = ("pending", "approved", "rejected")


uid_argument = click.argument(
    "uid",
    type=click.IntRange(min=1, max=MAX_INT64),
    help="The request's uid, as listed by custody admin requests.",
)
note_option = click.option("--note", help="What the requester is told.")


@admin.command("requests")
@state_option
@click.option("--status", type=click.Choice(STATUSES), help="Only those.")
@click.option("--after", default=0, type=click.IntRange(min=0, max=MAX_INT64), help="Go on after this uid.")
@json_option
def requests_command(state: Path, status: str | None, after: int) -> None:
    """List requests for organisations, the oldest first."""
    from custody.schemas.common import MAX_ITEMS
    from custody.schemas.onboarding import OnboardingQuery, OnboardingStatus
    from custody.server.people import onboarding
    from custody.server.shown import apart

    wanted = None if status is None else OnboardingStatus(status)
    query = OnboardingQuery(status=wanted, after=after or None, limit=MAX_ITEMS)
    with platform_at(state) as platform, platform.services.store.read() as db:
        page = onboarding.page(db, query)
    header = ("UID", "STATUS", "ORGANISATION", "WORKSPACE", "NETWORK", "ASKED BY")
    readable, unreadable = apart(page.items)
    give_list(page.items, header, map(_row, readable), "No requests.")
    if not wants_json():
        for item in unreadable:
            aside(f"Not shown: request {item.row_id}. {item.unreadable}")
        if page.has_more:
            say(f"There are more: go on with --after {page.following('uid')}.")


@admin.command("approve")
@uid_argument
@state_option
@note_option
@click.option(
    "--chain", type=click.Choice(CHAINS), help="Only for the platform's first workspace on this network."
)
@json_option
def approve_command(uid: int, state: Path, note: str | None, chain: str | None) -> None:
    """Approve the request: the requester becomes the administrator of a new organisation and workspace."""
    decided = _decide(state, uid, "approve", note, None if chain is None else Network(chain))
    organisation = decided.created_org_uid.value
    words = f"Request {uid} is approved: {decided.requester_email} runs organisation {organisation}."
    give(decided, words)


@admin.command("reject")
@uid_argument
@state_option
@note_option
@json_option
def reject_command(uid: int, state: Path, note: str | None) -> None:
    """Reject the request; the requester is mailed the note."""
    decided = _decide(state, uid, "reject", note, None)
    give(decided, f"Request {uid} is rejected, and {decided.requester_email} will be told.")


def _decide(
    state: Path, uid: int, decision: Literal["approve", "reject"], note: str | None, chain: Network | None
) -> "OnboardingRequest":
    from custody.schemas.onboarding import ReviewOnboardingRequest
    from custody.server.calls import Ctx
    from custody.server.people.onboarding import decide
    from custody.server.rules.credentials import OPERATOR

    with platform_at(state) as platform, platform.services.store.write() as db:
        review = ReviewOnboardingRequest(decision=decision, review_note=note)
        return decide(Ctx(platform.services, OPERATOR, db), uid, review, chain=chain)


def _row(item: "OnboardingRequest") -> tuple[str, ...]:
    return str(item.uid), item.status, item.org_name, item.workspace_name, item.network, item.requester_email
