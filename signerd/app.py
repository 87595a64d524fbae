"""Wiring: makes a running daemon from a state folder and a configuration."""

import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import platformdirs

from custody.common.private_files import folder_fault
from custody.common.session_store import SECRETS_FILE, Passphrase, SecretStore, credential
from firmware_bridge import Bridge, Deadlines, Endpoint, RegistrationFile, UnreadableRegistrations
from firmware_bridge.presence.holders import Turn, no_turns, turns_in
from signerd.account.config import Config, rules_of
from signerd.account.secrets import CREDENTIAL, file_store, keyring_store
from signerd.account.session import Account
from signerd.daemon.service import Daemon
from signerd.errors import RegistrationsUnreadable
from signerd.journal import Journal
from signerd.runtime import USUAL, DaemonDependencies

REGISTRATIONS_FILE = "registrations.json"
"""The registrations of vaults that Ledgers returned."""


def secret_store(config: Config, state: Path, ask: Passphrase) -> SecretStore:
    """As configured. The passphrase of a secrets file is a credential handed over at the start, as systemd
    does, or else comes from ``ask``.
    """
    if config.secrets.store == "keyring":
        return keyring_store(str(state.resolve()), config.secrets.keyring_seconds)
    handed = credential(CREDENTIAL)
    if handed is None:
        return file_store(state / SECRETS_FILE, ask)
    mode = "encrypted file, passphrase from $CREDENTIALS_DIRECTORY"
    return file_store(state / SECRETS_FILE, lambda: handed, mode=mode)


def open_journal(config: Config, state: Path, outside: DaemonDependencies = USUAL) -> Journal:
    """The journal of a held folder. Raises leaves of JournalError."""
    now = lambda: datetime.fromtimestamp(outside.now(), UTC)  # noqa: E731
    journal = Journal(state, network=config.network, now=now, fault=outside.fault)
    config.configure(journal)
    return journal


@contextlib.asynccontextmanager
async def open_daemon(
    config: Config,
    state: Path,
    store: SecretStore,
    outside: DaemonDependencies = USUAL,
    config_file: Path | None = None,
) -> AsyncIterator[Daemon]:
    """A daemon on a locked state folder, with its session restored; its tasks run while the body runs.

    ``config_file``: the file of ``config``, which the page can edit.

    Raises leaves of JournalError and SecretsError; RulesInvalid: a daemon does not start without the rules
    that the person wrote.
    """
    written = rules_of(config, state)
    async with contextlib.AsyncExitStack() as stack:
        journal = stack.enter_context(open_journal(config, state, outside))
        journal.rules = written.resolved(journal.pinned_codes())
        account = Account(config, store, outside)
        stack.push_async_callback(account.close)
        await account.restore()
        bridge = outside.bridge
        if bridge is None:
            bridge = await stack.enter_async_context(_bridge(config, state))
        daemon = Daemon(state, config, journal, account, bridge, outside, config_file)
        yield await stack.enter_async_context(daemon.running())


def _bridge(config: Config, state: Path) -> Bridge:
    """Raises RegistrationsUnreadable."""
    try:
        registrations = RegistrationFile.open(state / REGISTRATIONS_FILE)
    except UnreadableRegistrations as error:
        raise RegistrationsUnreadable(str(error)) from error
    return Bridge(
        network=config.network,
        endpoints=[Endpoint.parse(text) for text in config.devices.endpoints],
        usb=config.devices.usb,
        sandbox=config.devices.sandbox,
        registrations=registrations,
        deadlines=Deadlines(person=config.devices.person_minutes * 60.0),
        turn=_turn(state),
    )


def _turn(state: Path) -> Turn:
    """Lock files by which several daemons of one user share devices; the folder is private to the user."""
    folder = platformdirs.user_cache_path("signerd") / "turns"
    try:
        fault = folder_fault(folder)
    except OSError:
        return no_turns
    return no_turns if fault is not None else turns_in(folder, f"the signerd of {state}")
