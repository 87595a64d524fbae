"""The events of the daemon without I/O: how a line is read, and how a stream that broke off is taken up again."""

from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from signerd.errors import DaemonFailed, DaemonNotRunning, SignerdError
from signerd.shapes import Happened, calls

PATH: Final = calls.EVENTS.path
# Twice the daemon's heartbeat, and some.
SILENCE_SECONDS: Final = 35.0
# A daemon that is started anew asks its keyring and its devices first.
PATIENCE_SECONDS: Final = 300.0
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 15.0
_DATA: Final = "data: "
# A stream that began: what it told ends the patience with the one before.
BROKEN: Final = (DaemonNotRunning, DaemonFailed)


def asked(after: int | None, subject: str | None) -> dict[str, str | int]:
    """The query of a stream."""
    given = {"after": after, "subject": subject}
    return {name: value for name, value in given.items() if value is not None}


def is_news(line: str) -> bool:
    """Whether ``heard`` has anything to say of it."""
    return line.startswith((_DATA, ":"))


def heard(line: str) -> Happened | None:
    """What a line tells; None for one that only says that the daemon is there. Raises DaemonFailed."""
    if not line.startswith(_DATA):
        return None
    try:
        return Happened.model_validate_json(line.removeprefix(_DATA))
    except ValidationError:
        raise DaemonFailed("a line of the daemon's events makes no sense") from None


@dataclass
class Resumption:
    """Where a reader is, and how long it waits for a daemon that has gone.

    ``position``: the number of the last line that was read; None: from now on.
    """

    position: int | None
    patience: float = PATIENCE_SECONDS
    _pause: float = FIRST_PAUSE_SECONDS
    _waited: float = 0.0

    def headers(self) -> dict[str, str]:
        return {} if self.position is None else {"Last-Event-ID": str(self.position)}

    def hear(self, line: Happened | None) -> None:
        self._pause, self._waited = FIRST_PAUSE_SECONDS, 0.0
        if line is not None:
            self.position = line.number

    def pause(self, trouble: SignerdError | None) -> float:
        """Seconds until the next try. Raises what went wrong where patience is at its end."""
        if self._waited >= self.patience:
            raise trouble or DaemonNotRunning("signerd stopped, and was not started again")
        pause = min(self._pause, self.patience - self._waited)
        self._waited += pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        return pause
