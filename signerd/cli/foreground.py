"""The daemon in the foreground. It stays for weeks, so this imports nothing of the command line but what it prints with."""

import asyncio
import contextlib
import json
import signal
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from signerd.account.config import Config, find_config, load_config
from signerd.account.secrets import SecretStore
from signerd.app import open_daemon
from signerd.cli.answers import Answers
from signerd.cli.output import put, say
from signerd.cli.setup import opened_store
from signerd.core.states import network_words, state_words
from signerd.daemon.service import Daemon
from signerd.feed import Line
from signerd.journal.storage import StateFolder
from signerd.loopback.serve import serving
from signerd.notifying.notifier import notifying

# Told of what happens: the subject, the kind of line, the text.
Log = Callable[[str, str, str], None]
# A feed is never silent for so long that this matters; a wait must have an end.
_QUIET_SECONDS = 3600.0


def run_daemon(state: Path, answers: Answers, *, as_json: bool) -> None:
    """Until Ctrl-C or SIGTERM. Raises SignerdError."""
    with StateFolder.hold(state):
        config = load_config(find_config(state))
        store = opened_store(config, state, answers)
        asyncio.run(_serve(config, state, store, _log_json if as_json else _log_text))


async def _serve(config: Config, state: Path, store: SecretStore, log: Log) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    port = config.loopback.port_to_serve()
    async with open_daemon(config, state, store) as daemon, serving(daemon, state, port=port) as socket:
        log("signerd", "state", f"serves {socket}, {network_words(str(config.network))}")
        if daemon.page_address.url is not None:
            log("signerd", "state", f"serves the page at {daemon.page_address.url}: `signerd open` opens it")
        for note in (await daemon.status()).notes:
            log("signerd", "attention", note)
        async with notifying(daemon.feed, config.notifications.show):
            await _until(stop, daemon, log)
        log("signerd", "state", "stops")


async def _until(stop: asyncio.Event, daemon: Daemon, log: Log) -> None:
    """Until a signal, or until the daemon's own work ends: its context then raises the reason."""
    teller = asyncio.create_task(_tell(daemon, log))
    waiting = asyncio.create_task(stop.wait())
    await asyncio.wait({waiting, daemon.task, teller}, return_when=asyncio.FIRST_COMPLETED)
    for task in (waiting, teller):
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _tell(daemon: Daemon, log: Log) -> None:
    last = 0
    while True:
        for line in await daemon.feed.wait(last, None, _QUIET_SECONDS):
            log(line.subject, line.kind, _words(line))
            last = line.number


def _words(line: Line) -> str:
    return state_words(line.text) if line.kind == "state" else line.text


def _log_text(subject: str, kind: str, text: str) -> None:
    mark = "" if kind in {"state", "progress", "info", "device"} else f"[{kind}] "
    say(f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S}  {subject}: {mark}{text}")


def _log_json(subject: str, kind: str, text: str) -> None:
    at = datetime.now().astimezone().isoformat(timespec="milliseconds")
    put(json.dumps({"at": at, "subject": subject, "kind": kind, "text": text}))
