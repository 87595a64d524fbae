"""run, status."""

from typing import Annotated

import typer

from signerd.cli.desk import Json, desk_of
from signerd.cli.output import answer, say
from signerd.core.states import network_words


def run(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for each line.")] = False,
) -> None:
    """Run the daemon in the foreground until Ctrl-C or SIGTERM."""
    from signerd.cli.foreground import run_daemon

    desk = desk_of(context)
    run_daemon(desk.state, desk.answers, as_json=as_json)


def status(context: typer.Context, as_json: Json = False) -> None:
    """Show what the daemon does and what it needs."""
    with desk_of(context).daemon() as daemon:
        found = daemon.status()
    if as_json:
        answer(found)
        return
    reachable = "reachable" if found.platform_reachable else "not reached"
    signed_in = f"signed in as {found.email}" if found.signed_in else "signed out"
    say(
        f"signerd {found.version}    {network_words(found.network)}\n"
        f"  platform   {found.platform_url}, {reachable}, {signed_in}\n"
        f"  session    kept in: {found.secrets}\n"
        f"  your key   {found.fingerprint or 'not registered'}\n"
        f"  devices    {found.devices_ready} ready\n"
        f"  vaults     {found.vaults_pinned} pinned\n"
        f"  proposals  {found.waiting_for_you} wait for you\n"
        f"  journal    {found.journal_entries} entries, head {found.journal_head}\n"
        f"  state      {found.state_folder}\n"
        f"  page       {found.page_url or 'not served'}"
    )
    for note in found.notes:
        say(f"! {note}")


COMMANDS = (run, status)
