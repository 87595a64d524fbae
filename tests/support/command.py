"""The `signerd` program in this process: arguments, standard input, output and status."""

import io
import json
import sys
import unicodedata
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from signerd.cli import main


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        return json.loads(self.err.strip().splitlines()[-1])["error"]


def signerd(*arguments: str, state: Path | None = None, typed: str = "") -> Ended:
    """Runs it. ``typed``: standard input, a pipe."""
    given = ["signerd", *(["--state", str(state)] if state else []), *arguments]
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", given),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode()))),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            status = int(end.code or 0)
    return Ended(status, out.getvalue(), err.getvalue())


def is_tame(text: str) -> bool:
    """Whether it has no control or format characters but newlines."""
    return all(char == "\n" or unicodedata.category(char) not in {"Cc", "Cf", "Zl", "Zp"} for char in text)
