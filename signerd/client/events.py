"""The daemon's events, for both clients: the request, what a line tells, and where a reader that lost the
stream goes on.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from custody.exchange import Request
from custody.pace import Backoff, no_jitter
from signerd.asking import SILENCE_SECONDS, DaemonAddress
from signerd.client import plain
from signerd.errors import DaemonFailed, DaemonNotRunning, SignerdError
from signerd.shapes import calls

if TYPE_CHECKING:
    from signerd.shapes import Happened

# A daemon that is started anew asks its keyring and its devices first.
PATIENCE_SECONDS: Final = 300.0
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 15.0
_DATA: Final = "data: "
# A stream that ended so is taken up again.
BROKEN: Final = (DaemonNotRunning, DaemonFailed)


@dataclass
class Resumption:
    """Where a reader is, and how long it waits for a daemon that has gone.

    ``position``: the number of the last line that was read; None: from now on.
    """

    position: int | None
    patience: float = PATIENCE_SECONDS
    _backoff: Backoff = field(
        default_factory=lambda: Backoff(no_jitter, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
    )
    _waited: float = 0.0

    def hear(self, line: "Happened | None") -> None:
        self._backoff.reset()
        self._waited = 0.0
        if line is not None:
            self.position = line.number

    def pause(self, trouble: SignerdError | None) -> float:
        """Seconds until the next try. Raises ``trouble`` where patience is at its end."""
        if self._waited >= self.patience:
            raise trouble or DaemonNotRunning("signerd stopped, and was not started again")
        pause = min(self._backoff.next(), self.patience - self._waited)
        self._waited += pause
        return pause


def stream(
    address: DaemonAddress,
    subject: str | None,
    *,
    after: int | None = None,
    resumed: Resumption | None = None,
) -> Request:
    query = {name: value for name, value in {"after": after, "subject": subject}.items() if value is not None}
    position = None if resumed is None else resumed.position
    headers = {} if position is None else {"Last-Event-ID": str(position)}
    return address.request("GET", calls.EVENTS.path, SILENCE_SECONDS, query=query, headers=headers)


def is_news(line: str) -> bool:
    """Whether ``event`` has anything to say of it."""
    return line.startswith((_DATA, ":"))


def event(line: str, *, is_plain: bool) -> "Happened | None":
    """What a line tells; None for one that only says that the daemon is there. Raises DaemonFailed."""
    if not line.startswith(_DATA):
        return None
    told = line.removeprefix(_DATA)
    try:
        if is_plain:
            return plain.parse(told)  # type: ignore[no-any-return]  # its fields are the shape's
        from signerd.shapes import Happened

        # pydantic's errors are ValueErrors.
        return Happened.model_validate_json(told)
    except ValueError:
        raise DaemonFailed("a line of the daemon's events makes no sense") from None
