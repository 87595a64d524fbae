"""Questions to the person, answers to their programs, and the exit statuses, which scripts may rely on.

Passwords, codes and passphrases come from a terminal or from standard input, one line for each: a command
line is in the process list and in the shell's history. The daemon asks for a passphrase when it starts: no
library is needed for that.
"""

import getpass
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from signerd import errors as e
from signerd.core.text import plain
from signerd.errors import AnswerMissing, SignerdError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from pydantic import BaseModel

    Answer = BaseModel | DataclassInstance


class Answers(Protocol):
    """Each raises AnswerMissing where no answer comes."""

    def line(self, question: str) -> str: ...

    def secret(self, question: str, *, fresh: bool = False, empty: bool = False) -> str:
        """``fresh``: a typing error would lock its owner out, or open another wallet. ``empty``:
        nothing is an answer, too.
        """
        ...

    def yes(self, question: str) -> bool: ...


class Person:
    """A person at a terminal. Questions go to standard error: standard output is the command's answer."""

    def line(self, question: str) -> str:
        import click

        return str(click.prompt(question, err=True))

    def secret(self, question: str, *, fresh: bool = False, empty: bool = False) -> str:
        while True:
            given = getpass.getpass(f"{question}: ", sys.stderr)
            if not given and not empty:
                continue
            if not fresh or getpass.getpass("Repeat for confirmation: ", sys.stderr) == given:
                return given
            print("These were two different ones.", file=sys.stderr)

    def yes(self, question: str) -> bool:
        import click

        return click.confirm(question, default=False, err=True)


class Script:
    """Standard input that is no terminal."""

    def line(self, question: str) -> str:
        given = sys.stdin.readline()
        if not given:
            raise AnswerMissing(f"no answer to the question: {question}")
        return given.rstrip("\r\n")

    def secret(self, question: str, *, fresh: bool = False, empty: bool = False) -> str:  # noqa: ARG002 - a pipe makes no typing errors
        return self.line(question)

    def yes(self, question: str) -> bool:
        return self.line(question).strip().lower() in {"y", "yes"}


def answers() -> Answers:
    return Person() if sys.stdin.isatty() else Script()


class Exit(IntEnum):
    """What a command's status says."""

    OK = 0
    """Done. ``approve``: the platform has the signature."""
    FAILED = 1
    """Something went wrong that has no status of its own, or a question was left with Ctrl-C or Ctrl-D."""
    USAGE = 2
    """The command was not given as it must be, or an answer that it needs is missing."""
    NOT_RUNNING = 3
    """No daemon answers."""
    SIGNED_OUT = 4
    """No account is signed in to the platform, signing in failed, or the secret of the session
    cannot be had.
    """
    DEVICE = 5
    """A device is missing, not ready, or failed."""
    PLATFORM = 6
    """The platform is out of reach, or said no."""
    NOT_DECIDED = 7
    """What was asked cannot be decided as things stand: refused by a check, changed since it was shown,
    unknown.
    """
    DECLINED = 8
    """The person answered no. Nothing was changed."""
    NOT_SIGNED = 9
    """It was approved, and then not signed or not taken; the reason is shown."""
    STATE = 10
    """The state folder, the journal or the configuration cannot be used."""
    AUDIT = 11
    """The chain of decisions is not whole."""
    INTERRUPTED = 130
    """Ctrl-C while something was under way."""


# By family, or by leaf where one differs from its family; the most derived one counts.
STATUSES: Mapping[type[e.SignerdError], Exit] = MappingProxyType(
    {
        e.DecisionError: Exit.NOT_DECIDED,
        e.VaultError: Exit.NOT_DECIDED,
        e.RegistrationError: Exit.NOT_DECIDED,
        e.DeviceError: Exit.DEVICE,
        e.JournalError: Exit.STATE,
        e.BackupError: Exit.STATE,
        e.ConfigError: Exit.STATE,
        e.SecretsError: Exit.SIGNED_OUT,
        e.SessionError: Exit.SIGNED_OUT,
        e.PlatformError: Exit.PLATFORM,
        e.PairingError: Exit.NOT_DECIDED,
        e.LoopbackError: Exit.FAILED,
        e.InvalidRequest: Exit.USAGE,
        e.SocketUnusable: Exit.STATE,
        e.DaemonNotRunning: Exit.NOT_RUNNING,
        e.SetupError: Exit.USAGE,
        e.AlreadyConfigured: Exit.STATE,
        e.SystemToolFailed: Exit.FAILED,
    }
)


def status_of(error: e.SignerdError) -> Exit:
    return next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), Exit.FAILED)


_GAP = "  "


def put(text: str, *, err: bool = False) -> None:
    """A line as it is, at once: a reader of a log or a pipe does not wait for a buffer."""
    print(text, file=sys.stderr if err else sys.stdout, flush=True)


def say(text: str = "") -> None:
    """Lines of ours that may carry words of others: each line is cleaned, the line breaks stay."""
    put("\n".join(plain(line) for line in text.split("\n")))


def aside(text: str) -> None:
    """To standard error: what happens meanwhile, where standard output is for the answer."""
    put("\n".join(plain(line) for line in text.split("\n")), err=True)


def answer(value: "Answer | Sequence[Answer] | dict[str, Any]") -> None:
    """As JSON, in ASCII: no control character from outside gets to a terminal."""
    put(json.dumps(_ready(value), indent=2))


def _ready(value: "Answer | Sequence[Answer] | dict[str, Any]") -> Any:
    if isinstance(value, dict):
        return value
    if isinstance(value, Sequence):
        return [_ready(item) for item in value]
    if is_dataclass(value):
        return asdict(value)
    from signerd.client.plain import Values

    return value.as_json() if isinstance(value, Values) else value.model_dump(mode="json")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as they must be; the last one runs free."""
    cells = [list(header), *([plain(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(header))]
    for line in cells:
        padded = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        put(_GAP.join(padded).rstrip())


def fail(error: SignerdError, *, as_json: bool) -> Exit:
    """Tell what is wrong and what to do, on standard error; the status to end with."""
    status = status_of(error)
    if as_json:
        told = {
            "code": error.code,
            "sentence": plain(str(error)),
            "hint": plain(error.hint),
            "status": status,
        }
        put(json.dumps({"error": told}), err=True)
        return status
    sentence = str(error).rstrip(".")
    aside(f"signerd: {sentence}.")
    if error.hint:
        aside(f"  {error.hint}")
    return status


def end_with(work: Callable[[], object]) -> NoReturn:
    """Do it and end the process, with the status that belongs to how it went."""
    try:
        work()
    except SignerdError as error:
        sys.exit(fail(error, as_json="--json" in sys.argv[1:]))
    except (EOFError, KeyboardInterrupt):
        # A question was left.
        put("", err=True)
        sys.exit(Exit.FAILED)
    except BrokenPipeError:
        # The reader of the output has gone; the interpreter must not fail on it again when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Exit.FAILED)
    sys.exit(Exit.OK)
