"""What a service is to the program that starts it: some files, and that program's own commands.

Texts alone: ``signerd.cli.service`` writes and runs them.
"""

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

NAME = "signerd"
Command = tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """How a command ended: its exit status and its standard output."""

    status: int
    output: str


@dataclass(frozen=True)
class Place:
    """``command``: what starts this signerd, with an absolute path. ``state``: its state folder;
    ``own_state``: it is not the desktop's own, and has to be named. ``config``: the folder of every program's
    settings. ``user``: as the system names this user.
    """

    command: Command
    state: Path
    own_state: bool
    home: Path
    config: Path
    uid: int
    user: str

    @property
    def run(self) -> Command:
        """What starts the daemon."""
        return (*self.starting, "run")

    @property
    def starting(self) -> Command:
        return (*self.command, "--state", str(self.state)) if self.own_state else self.command


@dataclass(frozen=True)
class Service:
    """``before``: commands whose failure means nothing, as ending what does not run. ``marker``: there where
    it is installed. ``running``: what asks, and what the answer says.
    """

    manager: str
    marker: Path
    install: Sequence[Command]
    start: Sequence[Command]
    stop: Sequence[Command]
    uninstall: Sequence[Command]
    ask: Command
    running: Callable[[Answer], bool]
    files: Mapping[Path, bytes] = field(default_factory=dict)
    before: Sequence[Command] = ()
    # After the files are gone.
    forget: Sequence[Command] = ()


def this_command() -> Command:
    """As this program was installed: the script beside its interpreter, else the interpreter with the
    module.
    """
    script = shutil.which(NAME, path=str(Path(sys.executable).parent))
    return (script,) if script is not None else (sys.executable, "-P", "-m", NAME)
