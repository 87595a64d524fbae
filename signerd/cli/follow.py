"""Showing what happens while a person is busy at a device."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from signerd.core.states import ON_THE_WAY, state_words
from signerd.errors import DaemonNotRunning, SignerdError
from signerd.shapes import Happened, ProposalView

if TYPE_CHECKING:
    from signerd.client import DaemonClient, Following

Tell = Callable[[str], None]

# What was said a moment ago is on its way through a socket of this machine.
_PATIENCE_SECONDS = 5.0


def until_decided(daemon: "DaemonClient", psbt_id: str, after: int, tell: Tell) -> ProposalView:
    """Tell what happens to an approved proposal until it has its outcome; the proposal then.

    A line only says when to look: what counts is the proposal's state. Raises DaemonNotRunning where signerd stops.
    """
    said = ""
    with daemon.follow(after=after) as lines:
        for line in _with_a_look_first(daemon, after, lines):
            if line is not None and line.subject == psbt_id and line.kind != "ask":
                said = state_words(line.text) if line.kind == "state" else line.text
                tell(said)
            if line is None or _may_be_its_end(line, psbt_id):
                view = daemon.proposal(psbt_id)
                if view.state not in ON_THE_WAY:
                    if view.reason not in {"", said}:
                        tell(view.reason)
                    return view
    raise DaemonNotRunning(
        "signerd stopped while your approval was on its way",
        hint="It goes on where it was at the next `signerd run`.",
    )


def _may_be_its_end(line: Happened, psbt_id: str) -> bool:
    return line.subject == psbt_id and line.kind == "state" and line.text not in ON_THE_WAY


def _with_a_look_first(daemon: "DaemonClient", after: int, lines: "Following") -> Iterator[Happened | None]:
    """None says: look. Where nothing was said since ``after``, the outcome may have been there before."""
    if daemon.status().position == after:
        yield None
    yield from lines


@contextlib.contextmanager
def told(daemon: "DaemonClient", subject: str, tell: Tell) -> Iterator[None]:
    """Tell what happens to ``subject`` beside the body, which waits for the daemon's answer."""
    start = daemon.status().position
    with daemon.follow(after=start) as lines:
        listener = _Listener(lines, subject, tell, start)
        listener.start()
        try:
            yield
        finally:
            # Where the daemon has gone, the body has met that too and reports it.
            with contextlib.suppress(SignerdError):
                listener.hear_up_to(daemon.status().position)
            lines.stop()
            listener.join(_PATIENCE_SECONDS)


class _Listener(threading.Thread):
    """Follows everything, so as to know when it has heard all there was; tells what concerns its subject."""

    def __init__(self, lines: "Following", subject: str, tell: Tell, start: int) -> None:
        super().__init__(name="progress", daemon=True)
        self._lines = lines
        self._subject = subject
        self._tell = tell
        self._heard = start
        self._news = threading.Condition()

    def run(self) -> None:
        with contextlib.suppress(SignerdError):
            for line in self._lines:
                if line is not None:
                    self._hear(line)

    def _hear(self, line: Happened) -> None:
        if line.subject == self._subject and line.kind != "state":
            self._tell(line.text)
        with self._news:
            self._heard = line.number
            self._news.notify_all()

    def hear_up_to(self, position: int) -> None:
        with self._news:
            self._news.wait_for(lambda: self._heard >= position, _PATIENCE_SECONDS)
