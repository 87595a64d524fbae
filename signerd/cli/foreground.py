"""The daemon in the foreground: its configuration, secret store and log.

It runs for weeks, so this imports as little of the command line as possible.
"""

import asyncio
import json
import os
import signal
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from custody.common.interpreter import settle
from custody.common.private_files import write_private
from custody.common.session_store import SECRETS_FILE, SecretStore, credential
from custody.common.terminal import Prompter, put, say
from custody.schemas.errors import fault_words
from signerd.account.config import FILE, Config, find_config, load_config
from signerd.account.secrets import CREDENTIAL
from signerd.app import open_daemon, secret_store
from signerd.backup.schedule import back_up_on_schedule
from signerd.core.states import network_words, state_words
from signerd.daemon.service import Daemon
from signerd.errors import AlreadyConfigured, ConfigInvalid, ConfigMissing, SecretsLocked
from signerd.journal.storage import held, make_private
from signerd.loopback.serve import serving
from signerd.notifying.notifier import notifying
from signerd.runtime import alongside
from signerd.service.supervised import Supervisor

# Called with the subject, the kind of line and the text.
Log = Callable[[str, str, str], None]
# Every wait has an end; the feed is never silent for this long.
_QUIET_SECONDS = 3600.0


def run_daemon(state: Path, answers: Prompter, *, as_json: bool) -> None:
    """Until Ctrl-C or SIGTERM. Raises SignerdError."""
    supervisor = Supervisor.taken(os.environ, os.getpid())
    with held(state):
        config = load_config(find_config(state))
        store = opened_store(config, state, answers)
        asyncio.run(_serve(config, state, store, _log_json if as_json else _log_text, supervisor))


async def _serve(config: Config, state: Path, store: SecretStore, log: Log, supervisor: Supervisor) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    port = config.loopback.port_to_serve()
    async with (
        open_daemon(config, state, store, config_file=find_config(state)) as daemon,
        serving(daemon, state, port=port, handed=supervisor.listening) as socket,
    ):
        log("signerd", "state", f"serves {socket}, {network_words(str(config.network))}")
        if (url := daemon.page_address.url) is not None:
            log("signerd", "state", f"serves the page (`signerd open`), and apps at {url}")
        backups = alongside(
            back_up_on_schedule(
                state, config.backup, daemon.troubles, daemon.journal.now, daemon.journal.note_backup
            )
        )
        notices = notifying(daemon.feed, config.notifications.show, daemon.title)
        async with notices, backups, supervisor.notified():
            for note in (await daemon.status()).notes:
                log("signerd", "attention", note)
            settle()
            await _until(stop, daemon, log)
        log("signerd", "state", "stops")


async def _until(stop: asyncio.Event, daemon: Daemon, log: Log) -> None:
    """Until a signal, or until the daemon's own work ends: its context then raises the reason."""
    async with alongside(_tell(daemon, log)) as teller, alongside(stop.wait()) as waiting:
        await asyncio.wait({waiting, daemon.task, teller}, return_when=asyncio.FIRST_COMPLETED)


async def _tell(daemon: Daemon, log: Log) -> None:
    last = 0
    while True:
        for line in await daemon.feed.wait(last, None, _QUIET_SECONDS):
            log(line.subject, line.kind, state_words(line.text) if line.kind == "state" else line.text)
            last = line.number


def _log_text(subject: str, kind: str, text: str) -> None:
    mark = "" if kind in {"state", "progress", "info", "device"} else f"[{kind}] "
    say(f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S}  {subject}: {mark}{text}")


def _log_json(subject: str, kind: str, text: str) -> None:
    at = datetime.now().astimezone().isoformat(timespec="milliseconds")
    put(json.dumps({"at": at, "subject": subject, "kind": kind, "text": text}))


_OF_ALL = (
    "That file is for every state folder without one of its own: move it into the folder that it is for, "
    "or change it by hand."
)


@dataclass(frozen=True)
class SetupOptions:
    """The options of ``login`` and ``setup``; None for one that was not given."""

    platform: str | None
    network: str | None = None
    endpoints: tuple[str, ...] = ()
    label: str | None = None
    secrets: str | None = None

    def text(self) -> str:
        """The text of ``config.toml``. Raises ConfigMissing where no platform was given."""
        if self.platform is None:
            raise ConfigMissing("there is no configuration yet, and no --platform was given")
        lines = [f"network = {_quoted(self.network or 'mainnet')}"]
        if self.label is not None:
            lines.append(f"label = {_quoted(self.label)}")
        lines += ["", "[platform]", f"url = {_quoted(self.platform)}"]
        lines += ["", "[secrets]", f"store = {_quoted(self.secrets or 'keyring')}"]
        if self.endpoints:
            listed = ", ".join(_quoted(endpoint) for endpoint in self.endpoints)
            lines += ["", "[devices]", f"endpoints = [{listed}]"]
        return "\n".join(lines) + "\n"

    def require_same(self, known: Config, path: Path, state: Path) -> None:
        """Raises AlreadyConfigured where the existing configuration differs. It names every device, too: the
        daemon looks for no other.
        """
        for option, given, there in (
            ("--platform", self.platform, known.platform.url),
            ("--network", self.network, str(known.network)),
            ("--secrets", self.secrets, known.secrets.store),
            ("--label", self.label, known.label),
        ):
            if given not in {None, there}:
                hint = None if path == state / FILE else _OF_ALL
                raise AlreadyConfigured(f"{path} has for {option}: {there}, and not {given}", hint=hint)
        there = ", ".join(known.devices.endpoints) or "none but those on USB"
        if unknown := [one for one in self.endpoints if one not in known.devices.endpoints]:
            raise AlreadyConfigured(
                f"{path} has for --device: {there}, and not {', '.join(unknown)}",
                hint="Change `endpoints` under [devices] in that file, or use another state folder.",
            )


def config_for(state: Path, setup: SetupOptions) -> tuple[Config, Callable[[], None]]:
    """The configuration to sign in with, and a function that writes it if there is none yet: after the first
    success, so that a mistyped address is not stored.

    An existing configuration must agree: a running daemon uses it, and would send the password to its
    platform.

    Raises: ConfigInvalid: a value is invalid. AlreadyConfigured: an existing one differs; also raised by the
    function, if one was made meanwhile. Leaves of JournalError: the folder cannot be used.
    """
    make_private(state)
    known = _existing(state, setup)
    if known is not None:
        return known, lambda: None
    path, text = state / FILE, setup.text()

    def write() -> None:
        if _existing(state, setup) is None:
            write_private(path, text.encode())

    return _proposed(text), write


def _proposed(text: str) -> Config:
    """Raises ConfigInvalid, by the option."""
    try:
        return Config.model_validate(tomllib.loads(text))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        section = str(first["loc"][0])
        option = "device" if section == "devices" else section
        raise ConfigInvalid(
            f"--{option}: {fault_words(first)}", hint="Nothing was asked and nothing was written."
        ) from None


def _existing(state: Path, setup: SetupOptions) -> Config | None:
    """The existing configuration; None where there is none. Raises as ``config_for``."""
    try:
        path = find_config(state)
    except ConfigMissing:
        return None
    known = load_config(path)
    setup.require_same(known, path, state)
    return known


def _quoted(text: str) -> str:
    """A TOML basic string. JSON's strings are the same except for U+007F."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def opened_store(config: Config, state: Path, answers: Prompter) -> SecretStore:
    """The configured secret store. Raises SecretsLocked for a wrong passphrase, AnswerMissing for a missing
    one.
    """
    if config.secrets.store != "file" or credential(CREDENTIAL) is not None:
        return secret_store(config, state, lambda: None)
    fresh = not (state / SECRETS_FILE).exists()
    question = "Choose a passphrase for the secrets file" if fresh else "Passphrase of the secrets file"

    def opened(given: str) -> SecretStore:
        store = secret_store(config, state, lambda: given)
        store.load()
        return store

    def fault(given: str) -> str | None:
        try:
            opened(given)
        except SecretsLocked as error:
            return f"{error}. Once more:"
        return None

    return opened(answers.secret(question, fresh=fresh, fault=fault))
