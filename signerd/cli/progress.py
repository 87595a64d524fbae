"""What a terminal shows and asks while a person is busy at a device."""

import contextlib
import re
import select
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final, TextIO

from signerd.core.states import ON_THE_WAY, State, state_words
from signerd.errors import AnswerMissing, DaemonFailed, DaemonNotRunning, SignerdError
from signerd.standing import device_words

if TYPE_CHECKING:
    from signerd.cli.desk import Desk
    from signerd.client import DaemonClient
    from signerd.shapes import DeviceView, Happened, ProposalView, QuestionView, UnlockStep


Tell = Callable[[str], None]

# How long events that the daemon has already sent may take to arrive.
_PATIENCE_SECONDS = 5.0


def until_decided(daemon: "DaemonClient", psbt_id: str, after: int, tell: Tell) -> "ProposalView":
    """Print what happens to an approved proposal until it has its outcome, or is kept. Returns the proposal.

    An event only says when to look again; the proposal's state decides. Raises DaemonNotRunning where signerd
    stops.
    """
    said, tries = "", 0
    with daemon.follow(after=after) as lines:
        # Where there was no event since, the outcome may have been there before.
        for line in chain((None,) if daemon.status().position == after else (), lines):
            if line is not None and line.subject == psbt_id and line.kind != "ask":
                tries += line.kind == "state" and line.text == State.SUBMITTING
                words = _words(daemon, line, tries)
                # Some devices show the same screen twice.
                if words and words != said:
                    said = words
                    tell(words)
            is_state = line is not None and line.subject == psbt_id and line.kind == "state"
            if line is None or (is_state and line.text not in MOVING):
                view = daemon.proposal(psbt_id)
                if view.state not in MOVING:
                    if view.reason not in {"", said}:
                        tell(view.reason)
                    return view
    raise DaemonNotRunning(
        "signerd stopped while your approval was on its way",
        hint="It goes on at the next `signerd run`. If your device was asked already, approve again then.",
    )


# A kept signature may stay so for weeks: that is an outcome for now.
MOVING = ON_THE_WAY - {State.KEPT}


def _words(daemon: "DaemonClient", line: "Happened", tries: int) -> str:
    """The sentence for an event, or an empty one. ``tries``: attempts to submit so far; repeated attempts are
    reported once.
    """
    if line.kind != "state":
        return line.text
    if line.text == State.KEPT:
        return ""  # The reason is printed instead.
    if line.text == State.WAITING_DEVICE:
        return _waiting_text(daemon)
    if line.text == State.SIGNED and tries == 1:
        view = daemon.proposal(line.subject)
        why = view.reason or state_words(line.text)
        return f"{why} It is signed, and signerd goes on trying. Ctrl-C leaves it to that."
    return "" if line.text in {State.SUBMITTING, State.SIGNED} and tries > 1 else state_words(line.text)


def _waiting_text(daemon: "DaemonClient") -> str:
    """The state, and what to do where the registered device is not connected."""
    words, do = state_words(State.WAITING_DEVICE), device_words(daemon.devices(), daemon.status().fingerprint)
    again = f". {do} It is asked as soon as it is ready; Ctrl-C leaves the approval as it is."
    return words + again if do else words


@contextlib.contextmanager
def reporting(desk: "Desk", subject: str) -> Iterator[None]:
    """Print events about ``subject`` while the body waits for the daemon's answer."""
    daemon, news = desk.daemon, threading.Condition()
    position = daemon.status().position
    with daemon.follow(after=position) as lines:

        def listen() -> None:
            """Reads all events, to know when it has caught up with a position."""
            nonlocal position
            with contextlib.suppress(SignerdError):
                for line in lines:
                    if line is None:
                        continue
                    if line.subject == subject and line.kind != "state":
                        desk.tell(line.text)
                    with news:
                        position = line.number
                        news.notify_all()

        listener = threading.Thread(target=listen, name="progress", daemon=True)
        listener.start()
        try:
            yield
        finally:
            # If the daemon stopped, the body has failed as well and reports it.
            with contextlib.suppress(SignerdError):
                last = daemon.status().position
                with news:
                    news.wait_for(lambda: position >= last, _PATIENCE_SECONDS)
            lines.stop()
            listener.join(_PATIENCE_SECONDS)


WORD: Final = "another"
OFFER: Final = f"If your device shows another address and no button on it means no, type '{WORD}' here."
# How often the listener checks whether it has to end.
_POLL_SECONDS: Final = 0.2


@contextlib.contextmanager
def accepting_other_address(desk: "Desk", *, at: TextIO | None = None) -> Iterator[None]:
    """Let the person type that the device shows another address, while the body waits. Does nothing without a
    terminal.
    """
    terminal = sys.stdin if at is None else at
    if not terminal.isatty():
        yield
        return
    desk.tell(OFFER)
    over = threading.Event()
    listener = threading.Thread(target=_listen, args=(desk, terminal, over), name="terminal", daemon=True)
    listener.start()
    try:
        yield
    finally:
        over.set()
        listener.join()


def _listen(desk: "Desk", terminal: TextIO, over: threading.Event) -> None:
    while not over.is_set():
        ready, _, _ = select.select([terminal], [], [], _POLL_SECONDS)
        if not ready:
            continue
        line = terminal.readline()
        if not line:
            return
        if line.strip().lower() == WORD:
            with contextlib.suppress(SignerdError), desk.connect() as second:
                registered = second.status().fingerprint
                for device in second.devices():
                    if registered is not None and device.fingerprint == registered:
                        second.another_address(device.id)
                return
            desk.tell("No address is on your device's screen.")


MATRIX = """\
  The device shows the digits in another order each time. Type the places of your PIN's \
digits, not the digits:

      7 8 9
      4 5 6
      1 2 3
"""
HIDDEN_WALLETS = """\
  Every passphrase opens a wallet of its own, a wrong one too: no device says that it is wrong. \
Compare the fingerprint.
  Nothing at all is the wallet without a passphrase.
"""
PLACES = re.compile(r"[1-9]{1,50}")
# Two typing errors are allowed.
TRIES = 3


def follow_to_its_end(desk: "Desk", device: "DeviceView", *, on_device: bool) -> "DeviceView":
    """Ask, answer and wait until it is unlocked. Raises DeviceFailed where it was not."""
    step, said = desk.daemon.start_unlocking(device.id), ""
    while step.state != "unlocked":
        if step.text not in {"", said}:
            said = step.text
            desk.tell(said)
        step = _next(desk, step, on_device=on_device)
    if step.device is None:
        raise DaemonFailed("the daemon does not say which device was unlocked")
    return step.device


def _next(desk: "Desk", step: "UnlockStep", *, on_device: bool) -> "UnlockStep":
    if step.question is None:
        return desk.daemon.unlocking_step(step.device_id)
    given = None if on_device else _answer(desk, step.question)
    if given is None:
        desk.tell("Look at your device.")
    return desk.daemon.answer_question(step.question.id, given)


def _answer(desk: "Desk", question: "QuestionView") -> str | None:
    """The answer; None for no, or to answer on the device. Raises AnswerMissing."""
    match question.kind:
        case "pin":
            desk.tell(MATRIX)
            return _places(desk, question)
        case "passphrase":
            desk.tell(HIDDEN_WALLETS)
            return desk.answers.secret(f"Passphrase of {question.device}", fresh=True, empty=True)
        case "pairing":
            desk.tell(question.text)
            return "yes" if desk.answers.yes("Does the device show exactly this code?") else None
        case _:
            return desk.answers.secret(f"What {question.device} asks for ({question.kind})")


def _places(desk: "Desk", question: "QuestionView") -> str:
    for _slip in range(TRIES):
        given = desk.answers.secret(f"Places of the PIN of {question.device}").strip()
        if PLACES.fullmatch(given):
            return given
        desk.tell("  The places are the figures 1 to 9.")
    raise AnswerMissing("no places of a PIN were typed")
