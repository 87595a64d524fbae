"""systemd: a service and a socket unit of the user's manager (systemd.service(5), systemd.socket(5))."""

import os
from pathlib import Path

from signerd.service.manager import NAME, Command, Service, ServicePaths

UNITS = (f"{NAME}.socket", f"{NAME}.service")
# Where a system package puts user units.
PACKAGED = Path("/usr/lib/systemd/user")
# A user's own unit overrides the package's.
FOLDER = Path("systemd/user")
# The default state folder, for any user. Before version 254 systemd's `%S` is another folder.
STATE = "%h/.local/state/signerd"


def unit(name: str, command: Command, state: str) -> str:
    """The text of one of ``UNITS``. ``state`` may begin with a systemd specifier."""
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    return text.replace("@COMMAND@", " ".join(map(quoted, command))).replace("@STATE@", state)


def quoted(word: str) -> str:
    """A word of a command line for systemd, with specifiers, variables and quotes escaped."""
    plain = word.replace("%", "%%").replace("$", "$$")
    if not set(plain) & set(" \t\"'\\;"):
        return plain
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'


def service(place: ServicePaths, packaged: Path = PACKAGED) -> Service:
    """``packaged``: the folder of a package's units, which are used where they start this program."""
    given = not place.own_state and _starts(packaged / UNITS[1], place.command)
    folder = packaged if given else place.config / FOLDER
    state = str(place.state).replace("%", "%%") if place.own_state else STATE
    files = {} if given else {folder / one: unit(one, place.starting, state).encode() for one in UNITS}
    reload = _systemctl("daemon-reload")
    return Service(
        manager="systemd",
        marker=place.config / FOLDER / "default.target.wants" / UNITS[1],
        files=files,
        install=(reload, _systemctl("enable", *UNITS), _systemctl("start", *UNITS)),
        start=(_systemctl("start", *UNITS),),
        stop=(_systemctl("stop", *UNITS),),
        uninstall=(_systemctl("disable", "--now", *UNITS),),
        forget=(reload,),
        ask=_systemctl("is-active", UNITS[1]),
        running=lambda answer: answer.returncode == 0,
    )


def _starts(packaged: Path, command: Command) -> bool:
    """Whether a package's unit starts exactly this program."""
    try:
        lines = packaged.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    started = [line.removeprefix("ExecStart=").split()[:1] for line in lines if line.startswith("ExecStart=")]
    return [[os.path.realpath(word) for word in words] for words in started] == [
        [os.path.realpath(command[0])]
    ]


def _systemctl(*words: str) -> Command:
    return ("systemctl", "--user", *words)
