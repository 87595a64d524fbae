"""Running programs of the system, such as systemctl, and their output."""

import subprocess
from collections.abc import Iterable

from signerd.errors import SystemToolFailed
from signerd.service.manager import Command, Ended

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
