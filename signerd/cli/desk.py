"""The context of every command: the state folder, how questions are answered, and the daemon."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial, wraps
from os.path import lexists
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from custody.common.private_files import read_bounded, write_new
from custody.common.terminal import Exit, Prompter, aside, give, say
from signerd.errors import DaemonNotRunning, FileNotWritten, InvalidRequest, SignerdError, system_errors

if TYPE_CHECKING:
    from signerd.client import DaemonClient


Command = Callable[..., None]

json_option = click.option("--json", "as_json", is_flag=True, help="Answer with one JSON value.")
verbose_option = click.option("--verbose", "-v", is_flag=True, help="Also each check that passed.")
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask: for scripts.")
path_option = partial(click.option, type=click.Path(path_type=Path))


@dataclass(frozen=True)
class Desk:
    """``given``: the state folder of the command line, else the desktop's own. ``as_json``: the answer is one
    JSON value. ``yes``: the person is not asked (``--yes``). ``writes``: standard output is for a PSBT.
    """

    given: Path | None
    answers: Prompter
    as_json: bool = False
    yes: bool = False
    writes: bool = False

    @property
    def state(self) -> Path:
        if self.given is not None:
            return self.given
        # The same name as in signerd.account.config, which is slow to import.
        from platformdirs import user_state_path

        return user_state_path("signerd")

    @cached_property
    def daemon(self) -> "DaemonClient":
        """Raises DaemonNotRunning, UnsafeFolder."""
        return self.connect()

    def connect(self) -> "DaemonClient":
        """A client for another thread. Raises as ``daemon``."""
        from signerd.client import DaemonClient

        return DaemonClient.plain(self.state)

    def running(self) -> bool:
        """Whether a daemon answers. Raises UnsafeFolder, and what its status raises."""
        try:
            self.daemon.status()
        except DaemonNotRunning:
            return False
        return True

    def tell(self, words: str) -> None:
        """What is said beside the answer: standard output is for the answer where a program reads it."""
        aside(words) if self.as_json or self.writes else say(words)

    def give(self, value: Any, *lines: str) -> None:
        """What a command found: the value as JSON, or in words."""
        give(value, *lines, as_json=self.as_json)

    def confirm(self, question: str, otherwise: str = "") -> None:
        """Returns after a yes. ``otherwise``: said after a no. Raises click.exceptions.Exit."""
        if not self.yes and not self.answers.yes(question):
            if otherwise:
                self.tell(otherwise)
            raise click.exceptions.Exit(Exit.DECLINED)


NOT_UTF_8 = "Give the file as the device or program wrote it, or save it as text in UTF-8."


def read_file(path: Path, most: int) -> bytes:
    """Raises InvalidRequest where it cannot be read, or has more than ``most`` bytes."""
    with system_errors(InvalidRequest, f"{path} cannot be read", "Give another file."):
        return read_bounded(path, most)


def read_text(path: Path, most: int, hint: str = NOT_UTF_8) -> str:
    """As ``read_file``; also raises InvalidRequest for what is not UTF-8."""
    try:
        return read_file(path, most).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidRequest(f"{path} is not text in UTF-8", hint=hint) from None


def require_new(path: Path, kind: type[SignerdError] = InvalidRequest) -> None:
    """That a file can be written there, before anything is asked. Raises ``kind``."""
    if lexists(path):
        raise kind(f"{path} is there already", hint="Nothing was asked and nothing was overwritten.")
    if not path.parent.is_dir():
        raise kind(f"{path.parent} is not a folder", hint="Nothing was asked.")


def write_file(path: Path, content: bytes, hint: str | None = None) -> None:
    """A new file that only this user can read. Raises FileNotWritten, also where one is there."""
    with system_errors(FileNotWritten, f"{path} cannot be written", hint):
        write_new(path, content)


pass_desk = click.make_pass_decorator(Desk)


def answering(command: Command) -> Command:
    """A command of a desk, with ``--json``."""
    return json_option(_at_desk(command))


def asking(command: Command) -> Command:
    """A command that asks the person, with ``--yes``, too."""
    return yes_option(json_option(_at_desk(command)))


def _at_desk(command: Command) -> Command:
    @wraps(command)
    def run(desk: Desk, /, *, as_json: bool, yes: bool = False, **given: Any) -> None:
        command(replace(desk, as_json=as_json, yes=yes), **given)

    return pass_desk(run)
