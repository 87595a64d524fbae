"""udev: rules that let the user open a signing device on Linux."""

import os
import shlex
import sys
from pathlib import Path

import click

from custody.common.terminal import Exit, say, table
from signerd.cli.desk import Desk, answering
from signerd.cli.service import require
from signerd.errors import NeedsRoot, NotOnThisSystem, SystemToolFailed
from signerd.service.manager import this_command
from signerd.udev import rules

ROOT = Path("/")
CONNECT_AGAIN = "Connect your device again."


@click.group()
def udev() -> None:
    """The rules that let you open a signing device, on Linux."""


@udev.command()
@answering
def check(desk: Desk) -> None:
    """Say which rules are installed, and which device you may not open. Exit status 1 where something is
    missing.
    """
    _require_linux()
    files, shut = rules.rule_files(ROOT), rules.shut_devices(ROOT)
    whole = all(one.status is rules.RuleStatus.INSTALLED for one in files) and not shut
    listed = [{"name": one.name, "standing": one.status.value, "place": one.place} for one in files]
    if not desk.as_json:
        table(("RULE", "STATUS", "WHERE"), [tuple(one.values()) for one in listed])
    desk.give(
        {"rules": listed, "shut": [{"node": str(node), "rule": rule} for node, rule in shut]},
        *(f"You may not open {node}: {rule} would let you." for node, rule in shut),
        *(() if whole else (f"To install them: {_sudo()}",)),
    )
    raise click.exceptions.Exit(Exit.OK if whole else Exit.FAILED)


@udev.command()
@answering
def install(desk: Desk) -> None:
    """Install the rules that are missing, which takes root: without it, say what would be done."""
    _require_linux()
    wanted = [one.name for one in rules.rule_files(ROOT) if one.status is not rules.RuleStatus.INSTALLED]
    if wanted and os.geteuid():
        for name in () if desk.as_json else wanted:
            say(f"It would write /{rules.RULE_FOLDERS[0]}/{name}")
        for command in () if desk.as_json else rules.RELOAD_UDEV:
            say(f"It would run {' '.join(command)}")
        raise NeedsRoot("installing udev rules takes root", hint=f"Run: {_sudo()}")
    try:
        written = rules.install(ROOT)
    except OSError as error:
        raise SystemToolFailed(f"{error.filename} cannot be written: {error.strerror}") from error
    reloaded = bool(written) and (ROOT / rules.CONTROL).exists()
    if reloaded:
        require(rules.RELOAD_UDEV)
    then = (
        CONNECT_AGAIN if reloaded else f"udev does not run here: once it does, it reads them. {CONNECT_AGAIN}"
    )
    desk.give(
        {"written": [str(path) for path in written], "reloaded": reloaded},
        *(f"Written: {path}" for path in written),
        then if written else "Every rule is installed.",
    )


def _require_linux() -> None:
    """Raises NotOnThisSystem."""
    if sys.platform != "linux":
        raise NotOnThisSystem(
            "only Linux has udev", hint="A device needs no rule here: connect it, and see `signerd devices`."
        )


def _sudo() -> str:
    """With the absolute path: sudo has another PATH than the user's shell."""
    return shlex.join(("sudo", *this_command(), "udev", "install"))
