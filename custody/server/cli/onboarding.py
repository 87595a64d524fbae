"""``custody admin requests``, ``approve`` and ``reject``: deciding about requests for organisations."""

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from custody.server.cli.admin import Chain
from custody.server.cli.common import MAX_INT64, AsJson, State, platform_at, refusals
from multisig import Network

if TYPE_CHECKING:
    from custody.schemas.onboarding import OnboardingRequest, ReviewOnboardingRequest

app = typer.Typer(rich_markup_mode=None)


class Status(StrEnum):
    """As `custody.schemas.onboarding.OnboardingStatus`, without loading it; a test compares them."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"


Uid = Annotated[
    int, typer.Argument(help="The request's uid, as listed by custody admin requests.", min=1, max=MAX_INT64)
]
Note = Annotated[str | None, typer.Option(help="What the requester is told.")]


@app.command("requests")
def requests_command(
    state: State,
    status: Annotated[Status | None, typer.Option(help="Only those.")] = None,
    after: Annotated[int, typer.Option(help="Go on after this uid.", min=0, max=MAX_INT64)] = 0,
    as_json: AsJson = False,
) -> None:
    """Lists requests for organisations, the oldest first."""
    from custody.schemas.onboarding import MAX_REQUESTS, OnboardingQuery, OnboardingStatus

    wanted = None if status is None else OnboardingStatus(status)
    query = OnboardingQuery(status=wanted, after=after or None, limit=MAX_REQUESTS)
    with refusals(), platform_at(state) as platform, platform.services.store.read() as db:
        page = platform.services.onboarding.page_for_operator(db, query)
    if as_json:
        typer.echo(json.dumps([item.model_dump(mode="json", by_alias=True) for item in page.items]))
        return
    for item in page.items:
        typer.echo(
            f"{item.uid}: {item.status}, {item.org_name} with {item.workspace_name} on {item.network}, "
            f"asked by {item.requester_email}"
        )
    if page.has_more:
        typer.echo(f"There are more: go on with --after {page.items[-1].uid}.")


@app.command("approve")
def approve_command(
    uid: Uid,
    state: State,
    note: Note = None,
    chain: Annotated[
        Chain | None, typer.Option(help="Only for the platform's first workspace on this network.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Founds the organisation and its workspace; the requester becomes the administrator."""
    decided = _decide(state, uid, "approve", note, None if chain is None else Network(chain))
    typer.echo(
        _json(decided)
        if as_json
        else f"Request {uid} is approved: {decided.requester_email} runs organisation "
        f"{decided.created_org_uid.value}."
    )


@app.command("reject")
def reject_command(uid: Uid, state: State, note: Note = None, as_json: AsJson = False) -> None:
    """Rejects the request; the requester is told, with the note."""
    decided = _decide(state, uid, "reject", note, None)
    typer.echo(
        _json(decided)
        if as_json
        else f"Request {uid} is rejected, and {decided.requester_email} will be told."
    )


def _decide(
    state: State, uid: int, decision: Literal["approve", "reject"], note: str | None, chain: Network | None
) -> "OnboardingRequest":
    from custody.server.service.system import OPERATOR

    with refusals(), platform_at(state) as platform:
        review = _review(decision, note)
        with platform.services.store.write() as db:
            return platform.services.onboarding.decide(db, OPERATOR, uid, review, chain=chain)


def _review(decision: Literal["approve", "reject"], note: str | None) -> "ReviewOnboardingRequest":
    from pydantic import ValidationError

    from custody.schemas.onboarding import ReviewOnboardingRequest
    from custody.server.domain.errors import Invalid

    try:
        return ReviewOnboardingRequest(decision=decision, review_note=note)
    except ValidationError:
        raise Invalid("A note has at most 1000 characters.") from None


def _json(decided: "OnboardingRequest") -> str:
    return decided.model_dump_json(by_alias=True)
