"""Showing what happens while a person is busy at a device."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from signerd.cli.words import state_words
from signerd.errors import SignerdError
from signerd.loopback.shapes import Happened, ProposalView

if TYPE_CHECKING:
    from signerd.client import DaemonClient, Following

Tell = Callable[[str], None]

# Still on the way from a yes to the platform; in any other state the command has its outcome.
ON_THE_WAY = frozenset({"waiting-for-device", "signing", "verifying", "signed", "submitting"})
DELIVERED = frozenset({"submitted", "broadcast", "confirmed"})
_JOIN_SECONDS = 5.0


def until_decided(daemon: "DaemonClient", psbt_id: str, after: int, tell: Tell) -> ProposalView:
    """Tell what happens to an approved proposal until it has its outcome; the proposal then.

    A line only says when to look: what counts is the proposal's state.
    """
    told = ""
    with daemon.follow(after=after, subject=psbt_id) as lines:
        for line in _and_once_first(lines):
            if line is None or line.kind == "state":
                view = daemon.proposal(psbt_id)
                if view.state != told:
                    told = view.state
                    tell(f"{state_words(view.state)}{_why(view)}")
                if view.state not in ON_THE_WAY:
                    return view
            elif line.kind != "ask":
                tell(line.text)
    return daemon.proposal(psbt_id)


def _and_once_first(lines: "Following") -> Iterator[Happened | None]:
    yield None
    yield from lines


def _why(view: ProposalView) -> str:
    return f": {view.reason}" if view.reason else ""


@contextlib.contextmanager
def told(daemon: "DaemonClient", subject: str, tell: Tell) -> Iterator[None]:
    """Tell what happens to ``subject`` beside the body, which waits for the daemon's answer."""
    with daemon.follow(after=daemon.status().position, subject=subject) as lines:
        thread = threading.Thread(target=_tell_all, args=(lines, tell), name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            lines.stop()
            thread.join(_JOIN_SECONDS)


def _tell_all(lines: "Following", tell: Tell) -> None:
    # The body meets the same trouble, and is the one to report it.
    with contextlib.suppress(SignerdError):
        for line in lines:
            if line is not None and line.kind != "state":
                tell(line.text)
