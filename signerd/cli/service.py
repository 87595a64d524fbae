"""service: start signerd with the desktop, by the system's service manager."""

import os
import subprocess
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

import click

from custody.common.terminal import Exit, answer, aside, say
from signerd.cli.desk import Desk, answering
from signerd.errors import AlreadyRunning, InvalidRequest, NotOnThisSystem, SystemToolFailed
from signerd.service.manager import Command, Ended, Service, ServicePaths, this_command

HAND_OVER = (
    "The page 'Installing signerd' of the documentation says how to hand it over. "
    "Until then signerd does not start by itself."
)
KEYRING = 'Keep the session in the keyring: [secrets] store = "keyring".'
# By ``sys.platform``.
MANAGERS = {"linux": "signerd.service.systemd", "darwin": "signerd.service.launchd"}

# systemd waits two minutes for a daemon to be ready, and half a minute for one to stop.
SECONDS = 180.0


def run_command(command: Command) -> Ended:
    """Run a command. Raises SystemToolFailed where it cannot be run, or does not end in time."""
    words = " ".join(command)
    try:
        return subprocess.run(  # noqa: S603 - by a name of ours
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise SystemToolFailed(
            f"`{words}`: {command[0]} is not on this system",
            hint="On a system without it, start signerd with `signerd run`.",
        ) from None
    except subprocess.TimeoutExpired:
        raise SystemToolFailed(f"`{words}` did not end in {SECONDS:.0f} seconds") from None


def require(commands: Iterable[Command]) -> None:
    """Run commands in order. Raises SystemToolFailed with the output of the first that fails."""
    for command in commands:
        ended = run_command(command)
        if ended.returncode:
            output = f": {said}" if (said := ended.stdout.strip()) else ""
            raise SystemToolFailed(f"`{' '.join(command)}` ended with status {ended.returncode}{output}")


@click.group()
def service() -> None:
    """Start signerd with the desktop."""


@service.command()
@answering
def install(desk: Desk) -> None:
    """Start signerd now and at each sign-in. First sign in to the platform: `signerd login`."""
    from signerd.account.config import find_config, load_config

    kept = load_config(find_config(desk.state)).secrets.store
    made = _service(desk)
    _require_not_started_by_hand(desk, made)
    for path, content in made.files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        aside(f"Written: {path}")
    if kept == "file":
        # Said before the start, which fails where the passphrase is not a credential yet.
        aside("! It has no terminal to ask for the passphrase of the secrets file in.")
        aside(f"  {HAND_OVER if made.manager == 'systemd' else KEYRING}")
    for command in made.before:
        run_command(command)
    require(made.install)
    _give(desk, made, f"{made.manager} starts signerd now, and at each sign-in.")


@service.command()
@answering
def start(desk: Desk) -> None:
    """Start it, where it is installed."""
    made = _installed(desk)
    _require_not_started_by_hand(desk, made)
    require(made.start)
    _give(desk, made, "Started.")


@service.command()
@answering
def stop(desk: Desk) -> None:
    """Stop it until it is started, or until the next sign-in."""
    made = _installed(desk)
    require(made.stop)
    _give(desk, made, "Stopped.")


@service.command()
@answering
def status(desk: Desk) -> None:
    """Say whether it is installed and runs. Exit status 3 where it does not run."""
    made = _service(desk)
    installed, running = made.marker.exists(), made.running(run_command(made.ask))
    there = "installed" if installed else "not installed"
    _give(desk, made, f"{made.manager}: {there}, {'runs' if running else 'does not run'}.")
    raise click.exceptions.Exit(Exit.OK if running else Exit.NOT_RUNNING)


@service.command()
@answering
def uninstall(desk: Desk) -> None:
    """Stop and remove the service. Keys, journal and configuration stay."""
    made = _service(desk)
    if made.marker.exists():
        require(made.uninstall)
        for path in made.files:
            path.unlink(missing_ok=True)
        require(made.forget)
    _give(desk, made, f"It is not started any more. {desk.state} stays as it is.")


def _service(desk: Desk) -> Service:
    """Raises NotOnThisSystem."""
    home = Path.home()
    place = ServicePaths(
        command=this_command(),
        state=desk.state,
        # The service manager may not have this variable.
        own_state=desk.given is not None or "XDG_STATE_HOME" in os.environ,
        home=home,
        config=Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config"),
        uid=os.getuid(),
    )
    if sys.platform not in MANAGERS:
        raise NotOnThisSystem(f"signerd has no service for '{sys.platform}'")
    made: Service = import_module(MANAGERS[sys.platform]).service(place)
    return made


def _installed(desk: Desk) -> Service:
    """Raises NotOnThisSystem, InvalidRequest."""
    made = _service(desk)
    if not made.marker.exists():
        raise InvalidRequest("signerd is not installed as a service", hint="Run `signerd service install`.")
    return made


def _require_not_started_by_hand(desk: Desk, made: Service) -> None:
    """Raises AlreadyRunning where a daemon was started by hand: the service manager would take over its
    socket.
    """
    if desk.running() and not made.running(run_command(made.ask)):
        raise AlreadyRunning("a signerd that was started by hand runs", hint="Stop that one first.")


def _give(desk: Desk, made: Service, words: str) -> None:
    if not desk.as_json:
        say(words)
        return
    answer(
        {
            "manager": made.manager,
            "installed": made.marker.exists(),
            "running": made.running(run_command(made.ask)),
            "files": [str(path) for path in made.files],
        }
    )
