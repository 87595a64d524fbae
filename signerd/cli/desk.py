"""The context of every command: the state folder, how questions are answered, and the daemon."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from custody.private_files import read_bounded
from signerd.cli.terminal import Answers
from signerd.errors import InvalidRequest

if TYPE_CHECKING:
    from signerd.client import DaemonClient


json_option = click.option("--json", "as_json", is_flag=True, help="Answer with one JSON value.")
verbose_option = click.option("--verbose", "-v", is_flag=True, help="Also each check that passed.")
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask: for scripts.")


@dataclass(frozen=True)
class Desk:
    """``given``: the state folder of the command line, else the desktop's own."""

    given: Path | None
    answers: Answers

    @property
    def state(self) -> Path:
        if self.given is not None:
            return self.given
        # The same name as in signerd.account.config, which is slow to import.
        from platformdirs import user_state_path

        return user_state_path("signerd")

    def daemon(self) -> "DaemonClient":
        """Raises DaemonNotRunning, UnsafeFolder."""
        from signerd.client import DaemonClient

        return DaemonClient.plain(self.state)

    def running(self) -> bool:
        """Whether a daemon answers. Raises UnsafeFolder, and what its status raises."""
        from signerd.errors import DaemonNotRunning

        try:
            with self.daemon() as daemon:
                daemon.status()
        except DaemonNotRunning:
            return False
        return True


NOT_UTF_8 = "Give the file as the device or program wrote it, or save it as text in UTF-8."


def read_file(path: Path, most: int) -> bytes:
    """Raises InvalidRequest where it cannot be read, or has more than ``most`` bytes."""
    try:
        return read_bounded(path, most)
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}", hint="Give another file.") from None


pass_desk = click.make_pass_decorator(Desk)
