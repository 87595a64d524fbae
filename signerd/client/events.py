"""The daemon's events, for both clients: the request, parsing, and resuming a broken stream."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from custody.exchange import Request
from custody.pace import Backoff, no_jitter
from signerd.asking import SILENCE_SECONDS, DaemonAddress
from signerd.client import flow
from signerd.errors import DaemonFailed, DaemonNotRunning, SignerdError
from signerd.shapes import calls

if TYPE_CHECKING:
    from signerd.shapes import Happened

# A starting daemon opens its keyring and its devices first.
PATIENCE_SECONDS: Final = 300.0
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 15.0
_DATA: Final = "data: "
# Errors after which a stream is resumed.
BROKEN: Final = (DaemonNotRunning, DaemonFailed)


@dataclass
class Resumption:
    """The position of a reader, and how long it waits for a daemon that stopped.

    ``position``: the number of the last event that was read; None: from now on.
    """

    position: int | None
    patience: float = PATIENCE_SECONDS
    _backoff: Backoff = field(
        default_factory=lambda: Backoff(no_jitter, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
    )
    _waited: float = 0.0

    def received(self, line: "Happened | None") -> None:
        self._backoff.reset()
        self._waited = 0.0
        if line is not None:
            self.position = line.number

    def pause(self, trouble: SignerdError | None) -> float:
        """Seconds until the next try. Raises ``trouble`` after ``patience`` seconds."""
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
    """Whether ``event`` parses this line."""
    return line.startswith((_DATA, ":"))


def event(line: str, *, is_plain: bool) -> "Happened | None":
    """The event of a line; None for a heartbeat. Raises DaemonFailed."""
    if not line.startswith(_DATA):
        return None
    content = line.removeprefix(_DATA)
    try:
        if is_plain:
            return flow.parse(content)  # type: ignore[no-any-return]  # its fields are the shape's
        from signerd.shapes import Happened

        # pydantic's errors are ValueErrors.
        return Happened.model_validate_json(content)
    except ValueError:
        raise DaemonFailed("a line of the daemon's events makes no sense") from None
