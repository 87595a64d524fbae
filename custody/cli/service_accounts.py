"""``custody service-account``: make, list and revoke accounts of programs, and make their secrets."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import click

from custody.cli.changes import made_or_asked, told
from custody.cli.common import confirm, json_option, yes_option
from custody.cli.desk import Desk, pass_desk
from custody.cli.meant import chosen, place_of, workspace_option
from custody.naming import Candidate
from custody.terminal import answer, aside, put, say, table
from custody.text import count

if TYPE_CHECKING:
    from custody.client import Client
    from custody.schemas.service_accounts import ServiceAccount

_HEADER = ("ID", "NAME", "STATUS", "MAY", "FROM", "UNTIL", "MADE BY", "LAST USED")


def account_of(client: "Client", workspace_id: int, given: str, *, unseen: bool) -> "ServiceAccount":
    """Raises Stop."""
    known = {str(one.service_account_id): one for one in client.service_accounts(workspace_id)}
    candidates = [Candidate(key, (one.name,), f"'{one.name}'") for key, one in known.items()]
    hint = "custody service-account list shows them."
    return known[chosen(given, candidates, "service account", hint, unseen=unseen)]


@click.group("service-account")
def service_account() -> None:
    """Accounts for programs: each acts in its maker's name, with some of the maker's rights."""


@service_account.command("list")
@pass_desk
@workspace_option
@json_option
def list_command(desk: Desk, workspace: str | None, as_json: bool) -> None:
    """List them, with what they may and when they were last used."""
    with desk.client() as client:
        found = client.service_accounts(place_of(client, workspace).workspace_id)
    if as_json:
        answer(found)
    else:
        table(_HEADER, [_cells(one) for one in found])


@service_account.command("make")
@pass_desk
@click.argument("name")
@click.option("--right", "rights", multiple=True, required=True, help="A permission; give it once for each.")
@click.option(
    "--network", "networks", multiple=True, required=True, help="Where it is used from: 10.1.0.0/16."
)
@click.option("--days", default=90, type=click.IntRange(1, 366), help="How long it lasts.")
@workspace_option
@yes_option
@json_option
def make_command(
    desk: Desk,
    name: str,
    rights: tuple[str, ...],
    networks: tuple[str, ...],
    days: int,
    workspace: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Make an account for a program. It has no secret before ``custody service-account secret``."""
    from custody.schemas.service_accounts import CreateServiceAccountRequest

    with desk.client() as client:
        place = place_of(client, workspace)
        # Whole seconds: shown to the person as it is sent.
        ends = datetime.fromtimestamp(int(desk.outside.now()), UTC) + timedelta(days=days)
        request = CreateServiceAccountRequest.model_validate(
            {
                "workspace_id": place.workspace_id,
                "name": name,
                "rights": rights,
                "networks": networks,
                "expires_at": ends,
            }
        )
        aside(f"Service account '{request.name}' in '{place.name}' of {place.organisation}")
        aside(f"  It may, in your name: {', '.join(request.rights)}")
        aside(f"  From: {', '.join(request.networks)}; until {ends:%Y-%m-%d}")
        confirm(desk.answers, "Make it?", yes=yes)
        made = made_or_asked(
            desk,
            client,
            place,
            "/api/v1/create-service-account",
            request,
            lambda: client.create_service_account(request, idempotency_key=uuid4().hex),
            yes=yes,
        )
    told(made, f"Service account '{request.name}' is made.", as_json=as_json)


@service_account.command("secret")
@pass_desk
@click.argument("account")
@click.option(
    "--overlap-hours", default=24, type=click.IntRange(0, 168), help="How long the one before stays good."
)
@workspace_option
@yes_option
@json_option
def secret_command(
    desk: Desk, account: str, overlap_hours: int, workspace: str | None, yes: bool, as_json: bool
) -> None:
    """Make a new secret, and write it to standard output. It is never shown again."""
    from custody.schemas.service_accounts import IssueServiceSecretRequest

    with desk.client() as client:
        place = place_of(client, workspace)
        found = account_of(client, place.workspace_id, account, unseen=yes)
        aside(f"A new secret of service account {found.service_account_id} ({found.name})")
        confirm(
            desk.answers,
            f"The one before stays good for {count(overlap_hours, 'hour', 'hours')}. Make it?",
            yes=yes,
        )
        made = client.issue_service_secret(
            IssueServiceSecretRequest(
                workspace_id=place.workspace_id,
                service_account_id=found.service_account_id,
                overlap_hours=overlap_hours,
            )
        )
    if as_json:
        answer(made)
    else:
        put(made.secret)


@service_account.command("revoke")
@pass_desk
@click.argument("account")
@workspace_option
@yes_option
@json_option
def revoke_command(desk: Desk, account: str, workspace: str | None, yes: bool, as_json: bool) -> None:
    """Revoke an account at once and for good, whichever member made it."""
    from custody.schemas.service_accounts import ServiceAccountRequest

    with desk.client() as client:
        place = place_of(client, workspace)
        found = account_of(client, place.workspace_id, account, unseen=yes)
        aside(f"Service account {found.service_account_id} ({found.name}) of {found.made_by_name}")
        confirm(desk.answers, "End it for good?", yes=yes)
        ended = client.revoke_service_account(
            ServiceAccountRequest(
                workspace_id=place.workspace_id, service_account_id=found.service_account_id
            )
        )
    if as_json:
        answer(ended)
    else:
        say(f"Service account {ended.service_account_id} ({ended.name}) is revoked.")


def _cells(one: "ServiceAccount") -> tuple[str, ...]:
    used = "never"
    if one.last_used_at is not None:
        used = f"{one.last_used_at:%Y-%m-%d %H:%M} from {one.last_used_from}"
    return (
        str(one.service_account_id),
        one.name,
        one.status.lower(),
        ", ".join(one.rights),
        ", ".join(one.networks),
        f"{one.expires_at:%Y-%m-%d}",
        one.made_by_name,
        used,
    )
