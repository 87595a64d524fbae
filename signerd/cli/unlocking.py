"""Unlocking a device at a terminal: each question of the device's is asked, and answered unseen."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from signerd.errors import AnswerMissing, DaemonFailed

if TYPE_CHECKING:
    from signerd.cli.answers import Answers
    from signerd.client import DaemonClient
    from signerd.shapes import DeviceView, QuestionView, UnlockStep

Tell = Callable[[str], None]

MATRIX = """\
  The device shows the digits in another order each time. Type the places of your PIN's digits, not the digits:

      7 8 9
      4 5 6
      1 2 3
"""
HIDDEN_WALLETS = """\
  Every passphrase opens a wallet of its own, a wrong one too: no device says that it is wrong. Compare the fingerprint.
  Nothing at all is the wallet without a passphrase.
"""
PLACES = re.compile(r"[1-9]{1,50}")
# A slip, and another one; then the person starts anew.
TRIES = 3


def follow_to_its_end(
    daemon: "DaemonClient", device: "DeviceView", answers: "Answers", tell: Tell, *, on_device: bool
) -> "DeviceView":
    """Ask, answer and wait until it is unlocked. Raises DeviceFailed where it was not."""
    step, said = daemon.start_unlocking(device.id), ""
    while step.state != "unlocked":
        if step.text not in {"", said}:
            said = step.text
            tell(said)
        step = _next(daemon, step, answers, tell, on_device=on_device)
    if step.device is None:
        raise DaemonFailed("the daemon does not say which device was unlocked")
    return step.device


def _next(
    daemon: "DaemonClient", step: "UnlockStep", answers: "Answers", tell: Tell, *, on_device: bool
) -> "UnlockStep":
    if step.question is None:
        return daemon.unlocking_step(step.device_id)
    given = None if on_device else _answer(step.question, answers, tell)
    if given is None:
        tell("Look at your device.")
    return daemon.answer_question(step.question.id, given)


def _answer(question: "QuestionView", answers: "Answers", tell: Tell) -> str | None:
    """None: left to the device, or no. Raises AnswerMissing."""
    match question.kind:
        case "pin":
            tell(MATRIX)
            return _places(question, answers, tell)
        case "passphrase":
            tell(HIDDEN_WALLETS)
            return answers.secret(f"Passphrase of {question.device}", fresh=True, empty=True)
        case "pairing":
            tell(question.text)
            return "yes" if answers.yes("Does the device show exactly this code?") else None
        case _:
            return answers.secret(f"What {question.device} asks for ({question.kind})")


def _places(question: "QuestionView", answers: "Answers", tell: Tell) -> str:
    for _slip in range(TRIES):
        given = answers.secret(f"Places of the PIN of {question.device}").strip()
        if PLACES.fullmatch(given):
            return given
        tell("  The places are the figures 1 to 9.")
    raise AnswerMissing("no places of a PIN were typed")
