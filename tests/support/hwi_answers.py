"""The `signerd-hwi` program in this process: its arguments, what it reads,
its one JSON value, and its status.
"""

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
        """What Core reads: the first line of standard output, and there is no other."""
        (line,) = self.out.splitlines()
        return json.loads(line)


def signerd_hwi(*arguments: str, state: Path, typed: str = "") -> Answered:
    """Run it. ``typed`` is standard input."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["signerd-hwi", "--state", str(state), *arguments]),
        mock.patch.object(sys, "stdin", io.StringIO(typed)),
        # A signal's handler belongs to a process, and this one is the test's.
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
    """The sentence of an answer that says no, with this code."""
    assert answered.status == 0, "a no is an answer"
    assert answered.value["code"] == code, answered.value
    return answered.value["error"]
