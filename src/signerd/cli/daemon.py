"""run, status."""

import asyncio
import contextlib
import json
import signal
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from signerd.cli.desk import Json, desk_of
from signerd.cli.output import answer, say
from signerd.cli.words import network_words, state_words

if TYPE_CHECKING:
    from pathlib import Path

    from signerd.account.config import Config
    from signerd.account.secrets import SecretStore
    from signerd.daemon import Daemon
    from signerd.feed import Line

# Told of what happens: the subject, the kind of line, the text.
Log = Callable[[str, str, str], None]
# A feed is never silent for so long that this matters; a wait must have an end.
_QUIET_SECONDS = 3600.0


def run(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for each line.")] = False,
) -> None:
    """Run the daemon in the foreground until Ctrl-C or SIGTERM."""
    from signerd.account.config import find_config, load_config
    from signerd.cli.secrets import opened_store
    from signerd.journal.folder import StateFolder

    desk = desk_of(context)
    with StateFolder.hold(desk.state):
        config = load_config(find_config(desk.state))
        store = opened_store(config, desk.state, desk.answers)
        asyncio.run(_serve(config, desk.state, store, _log_json if as_json else _log_text))


async def _serve(config: "Config", state: "Path", store: "SecretStore", log: Log) -> None:
    from signerd.app import open_daemon
    from signerd.loopback.serve import serving

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with open_daemon(config, state, store) as daemon, serving(daemon, state) as socket:
        log("signerd", "state", f"serves {socket}, {network_words(str(config.network))}")
        for note in (await daemon.status()).notes:
            log("signerd", "attention", note)
        await _until(stop, daemon, log)
        log("signerd", "state", "stops")


async def _until(stop: asyncio.Event, daemon: "Daemon", log: Log) -> None:
    """Until a signal, or until the daemon's own work ends: its context then raises the reason."""
    teller = asyncio.create_task(_tell(daemon, log))
    waiting = asyncio.create_task(stop.wait())
    await asyncio.wait({waiting, daemon.task, teller}, return_when=asyncio.FIRST_COMPLETED)
    for task in (waiting, teller):
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _tell(daemon: "Daemon", log: Log) -> None:
    last = 0
    while True:
        for line in await daemon.feed.wait(last, None, _QUIET_SECONDS):
            log(line.subject, line.kind, _words(line))
            last = line.number


def _words(line: "Line") -> str:
    return state_words(line.text) if line.kind == "state" else line.text


def _log_text(subject: str, kind: str, text: str) -> None:
    mark = "" if kind in {"state", "progress", "info", "device"} else f"[{kind}] "
    say(f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S}  {subject}: {mark}{text}")


def _log_json(subject: str, kind: str, text: str) -> None:
    at = datetime.now().astimezone().isoformat(timespec="milliseconds")
    typer.echo(json.dumps({"at": at, "subject": subject, "kind": kind, "text": text}))


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
        f"  state      {found.state_folder}"
    )
    for note in found.notes:
        say(f"! {note}")


COMMANDS = (run, status)
