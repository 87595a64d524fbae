"""The command line's output and questions (``custody.terminal``), with signerd's errors and exit statuses."""

import os
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NoReturn

from custody import terminal
from custody.terminal import Answers, Exit, answer, aside, put, say, table, tell
from signerd import errors as e
from signerd.errors import AnswerMissing, SignerdError

__all__ = [
    "STATUSES",
    "Answers",
    "Exit",
    "answer",
    "answers",
    "aside",
    "end_with",
    "fail",
    "give",
    "put",
    "say",
    "status_of",
    "table",
    "tell",
]


def answers() -> Answers:
    return terminal.answers(AnswerMissing)


def give(value: Any, words: str, *, as_json: bool) -> None:
    """What a command found: the value as JSON, or in words."""
    answer(value) if as_json else say(words)


# By base class, or by leaf where it differs; the most derived class counts.
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
        e.FileNotWritten: Exit.STATE,
        e.SystemToolFailed: Exit.FAILED,
    }
)


def status_of(error: e.SignerdError | type[e.SignerdError]) -> Exit:
    leaf = error if isinstance(error, type) else type(error)
    return next((STATUSES[kind] for kind in leaf.__mro__ if kind in STATUSES), Exit.FAILED)


def fail(error: SignerdError, *, as_json: bool) -> Exit:
    """Print the error and its hint on standard error. Returns the exit status."""
    return tell("signerd", error.code, str(error), error.hint, status_of(error), as_json=as_json)


def end_with(work: Callable[[], object]) -> NoReturn:
    """Run ``work`` and end the process with the matching exit status."""
    try:
        work()
    except SignerdError as error:
        sys.exit(fail(error, as_json="--json" in sys.argv[1:]))
    except (EOFError, KeyboardInterrupt):
        # A new line after the terminal's ^C.
        put("", err=True)
        sys.exit(Exit.INTERRUPTED)
    except BrokenPipeError:
        # The reader of the output has gone; the interpreter must not fail on it again when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Exit.FAILED)
    sys.exit(Exit.OK)
