"""A service as its manager sees it: some files, and the manager's own commands.

Data only: ``signerd.cli.service`` writes the files and runs the commands.
"""

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess

NAME = "signerd"
Command = tuple[str, ...]


# A command that has ended: its exit status and standard output.
Ended = CompletedProcess[str]


@dataclass(frozen=True)
class ServicePaths:
    """``command``: this signerd's program, with an absolute path. ``own_state``: ``state`` is not the default
    folder and has to be named. ``config``: the user's configuration folder.
    """

    command: Command
    state: Path
    own_state: bool
    home: Path
    config: Path
    uid: int

    @property
    def run(self) -> Command:
        """The command that runs the daemon."""
        return (*self.starting, "run")

    @property
    def starting(self) -> Command:
        return (*self.command, "--state", str(self.state)) if self.own_state else self.command


@dataclass(frozen=True)
class Service:
    """``before``: commands whose failure is ignored, such as stopping what does not run. ``marker``: a file
    that exists while the service is installed. ``running``: reads the answer of ``ask``.
    """

    manager: str
    marker: Path
    install: Sequence[Command]
    start: Sequence[Command]
    stop: Sequence[Command]
    uninstall: Sequence[Command]
    ask: Command
    running: Callable[[Ended], bool]
    files: Mapping[Path, bytes] = field(default_factory=dict)
    before: Sequence[Command] = ()
    # Run after the files are removed.
    forget: Sequence[Command] = ()


def this_command() -> Command:
    """The script beside this interpreter, or else the interpreter with the module."""
    script = shutil.which(NAME, path=str(Path(sys.executable).parent))
    return (script,) if script is not None else (sys.executable, "-P", "-m", NAME)
