"""``custody service-account``: make, list and revoke accounts of programs, and make their secrets."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from custody.cli.access import Access, asking_in_workspace, in_workspace
from custody.cli.changes import make_or_ask
from custody.cli.common import give, give_list
from custody.common.naming import NamedRecord
from custody.common.terminal import aside
from custody.common.text import count, day_words, minute

if TYPE_CHECKING:
    from custody.schemas.service_accounts import ServiceAccount


def account_of(access: Access, given: str) -> "ServiceAccount":
    """Raises Stop."""
    accounts = access.client.service_accounts(access.workspace_id)
    known = [NamedRecord(str(one.service_account_id), (one.name,), f"'{one.name}'", one) for one in accounts]
    return access.pick(given, known, "service account", "custody service-account list shows them.")


@click.group("service-account")
def service_account() -> None:
    """Accounts for programs: each acts in its maker's name, with some of the maker's rights."""


@service_account.command("list")
@in_workspace
def list_command(access: Access) -> None:
    """List them, with what they may and when they were last used."""
    accounts = access.client.service_accounts(access.workspace_id)
    header = ("ID", "NAME", "STATUS", "MAY", "FROM", "UNTIL", "MADE BY", "LAST USED")
    give_list(accounts, header, map(_cells, accounts))


@service_account.command("make")
@click.argument("name")
@click.option("--right", "rights", multiple=True, required=True, help="A permission; give it once for each.")
@click.option(
    "--network", "networks", multiple=True, required=True, help="Where it is used from: 10.1.0.0/16."
)
@click.option("--days", default=90, type=click.IntRange(1, 366), help="How long it lasts.")
@asking_in_workspace
def make_command(
    access: Access, name: str, rights: tuple[str, ...], networks: tuple[str, ...], days: int
) -> None:
    """Make an account for a program. It has no secret before ``custody service-account secret``."""
    # Whole seconds: shown to the person as it is sent.
    ends = datetime.fromtimestamp(int(access.desk.outside.now()), UTC) + timedelta(days=days)
    make = access.client.create_service_account
    request = access.request(make, name=name, rights=rights, networks=networks, expires_at=ends)
    aside(f"Service account '{request.name}' in {access.workspace.words}")
    aside(f"  It may, in your name: {', '.join(request.rights)}")
    aside(f"  From: {', '.join(request.networks)}; until {day_words(ends)}")
    access.confirm("Make it?")
    make_or_ask(access, make, request, f"Service account '{request.name}' is made.")


@service_account.command("secret")
@click.argument("account")
@click.option(
    "--overlap-hours", default=24, type=click.IntRange(0, 168), help="How long the one before stays good."
)
@asking_in_workspace
def secret_command(access: Access, account: str, overlap_hours: int) -> None:
    """Make a new secret, and write it to standard output. It is never shown again."""
    chosen = account_of(access, account)
    aside(f"A new secret of service account {chosen.service_account_id} ({chosen.name})")
    access.confirm(f"The one before stays good for {count(overlap_hours, 'hour', 'hours')}. Make it?")
    issue, account_id = access.client.issue_service_secret, chosen.service_account_id
    made = access.make(issue, service_account_id=account_id, overlap_hours=overlap_hours)
    give(made, made.secret)


@service_account.command("revoke")
@click.argument("account")
@asking_in_workspace
def revoke_command(access: Access, account: str) -> None:
    """Revoke an account at once and for good, whichever member made it."""
    chosen = account_of(access, account)
    aside(f"Service account {chosen.service_account_id} ({chosen.name}) of {chosen.made_by_name}")
    access.confirm("End it for good?")
    ended = access.make(access.client.revoke_service_account, service_account_id=chosen.service_account_id)
    give(ended, f"Service account {ended.service_account_id} ({ended.name}) is revoked.")


def _cells(one: "ServiceAccount") -> tuple[str, ...]:
    used = "never"
    if one.last_used_at is not None:
        used = f"{minute(one.last_used_at)} from {one.last_used_from}"
    return (
        str(one.service_account_id),
        one.name,
        one.status.lower(),
        ", ".join(one.rights),
        ", ".join(one.networks),
        day_words(one.expires_at),
        one.made_by_name,
        used,
    )
