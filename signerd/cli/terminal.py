"""The command line's output and questions (``custody.common.terminal``), with signerd's errors."""

import os
import sys
from collections.abc import Callable
from typing import NoReturn

from custody.common import terminal
from custody.common.terminal import Exit, Prompter, answer, aside, give, put, say, table, tell
from signerd.errors import AnswerMissing, SignerdError

__all__ = [
    "Exit",
    "Prompter",
    "answer",
    "answers",
    "aside",
    "end_with",
    "fail",
    "give",
    "put",
    "say",
    "table",
    "tell",
]


def answers() -> Prompter:
    return terminal.answers(AnswerMissing)


def fail(error: SignerdError, *, as_json: bool) -> Exit:
    """Print the error and its hint on standard error. Returns the exit status."""
    return tell("signerd", error.code, str(error), error.hint, error.exit_status, as_json=as_json)


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
