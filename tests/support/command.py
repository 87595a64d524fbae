"""The programs `signerd` and `signerd-hwi` in this process: arguments, standard input, output and status."""

import io
import json
import os
import sys
import unicodedata
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from custody.common.terminal import Exit
from signerd.cli import main
from signerd.hwi import program as hwi


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def value(self) -> Any:
        """The one line of standard output, which Core reads."""
        (line,) = self.out.splitlines()
        return json.loads(line)

    @property
    def error(self) -> dict[str, Any]:
        return json.loads(self.err.strip().splitlines()[-1])["error"]


def ended(program: Callable[[], object], *given: str, typed: str = "") -> Ended:
    """Runs a program. ``typed``: standard input, a pipe."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", list(given)),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode()))),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            program()
        except SystemExit as end:
            status = int(end.code or 0)
    return Ended(status, out.getvalue(), err.getvalue())


def signerd(*arguments: str, state: Path | None = None, typed: str = "", ends: int = Exit.OK) -> Ended:
    """``ends``: the status with which it must end."""
    with mock.patch.dict(os.environ, {"SIGNERD_STATE": str(state)} if state else {}):
        done = ended(main, "signerd", *arguments, typed=typed)
    assert done.status == ends, (arguments, done)
    return done


def signerd_hwi(*arguments: str, state: Path, typed: str = "") -> Ended:
    # Signal handlers are the process's, which is the test's.
    with mock.patch.object(hwi.signal, "signal"):
        return ended(hwi.program, "signerd-hwi", "--state", str(state), *arguments, typed=typed)


def no(answered: Ended, code: int) -> str:
    """The sentence of `signerd-hwi`'s refusal with this code."""
    assert answered.status == 0, "a no is an answer"
    assert answered.value["code"] == code, answered.value
    return answered.value["error"]


def is_tame(text: str) -> bool:
    """Whether it has no control or format characters but newlines."""
    return all(char == "\n" or unicodedata.category(char) not in {"Cc", "Cf", "Zl", "Zp"} for char in text)
