"""The `signerd-hwi` program in this process: arguments, standard input, its one JSON value, and status."""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from signerd.hwi import program


@dataclass(frozen=True)
class Answered:
    status: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        """The first line of standard output, which Core reads; there must be no other."""
        (line,) = self.out.splitlines()
        return json.loads(line)


def signerd_hwi(*arguments: str, state: Path, typed: str = "") -> Answered:
    """Runs it. ``typed``: standard input."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["signerd-hwi", "--state", str(state), *arguments]),
        mock.patch.object(sys, "stdin", io.StringIO(typed)),
        # Signal handlers are the process's, which is the test's.
        mock.patch.object(program.signal, "signal"),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            program.program()
        except SystemExit as end:
            status = int(end.code or 0)
    return Answered(status, out.getvalue(), err.getvalue())


def no(answered: Answered, code: int) -> str:
    """The sentence of a refusal with this code."""
    assert answered.status == 0, "a no is an answer"
    assert answered.value["code"] == code, answered.value
    return answered.value["error"]
