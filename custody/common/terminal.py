"""What our programs share at a terminal: questions to the person, answers to their programs, and the exit
statuses, which scripts may rely on.

Passwords, codes and passphrases come from a terminal or from standard input, one line for each: a command
line is in the process list and in the shell's history. A daemon asks for a passphrase when it starts: no
library is needed for that.
"""

import getpass
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from custody.common.exits import Exit as Exit  # noqa: PLC0414 - every command takes it from here
from custody.common.text import plain

if TYPE_CHECKING:
    import click
    from _typeshed import DataclassInstance
    from pydantic import BaseModel

    Answer = BaseModel | DataclassInstance

# The questions of a sign-in to the platform.
EMAIL, PASSWORD, CODE = "E-mail", "Password", "One-time code (mailed to you, or your authenticator's)"


class Person:
    """A person at a terminal. Questions go to standard error: standard output is the command's answer."""

    def line(self, question: str, *, empty: bool = False) -> str:
        """``empty``: nothing but Enter is an answer, too."""
        import click

        return str(click.prompt(question, default="" if empty else None, show_default=False, err=True))

    def secret(
        self,
        question: str,
        *,
        fresh: bool = False,
        empty: bool = False,
        fault: Callable[[str], str | None] = lambda _given: None,
    ) -> str:
        """``fresh``: a typing error would lock its owner out, or open another wallet. ``empty``: nothing is
        an answer, too. ``fault``: why another answer is asked for.
        """
        while True:
            given = getpass.getpass(f"{question}: ", sys.stderr)
            if not given and not empty:
                continue
            if why := fault(given):
                print(why, file=sys.stderr)
                continue
            if not fresh or getpass.getpass("Repeat for confirmation: ", sys.stderr) == given:
                return given
            print("The two differ.", file=sys.stderr)

    def yes(self, question: str) -> bool:
        import click

        return click.confirm(question, default=False, err=True)


@dataclass(frozen=True)
class Script:
    """Standard input that is no terminal. ``missing``: the error for an answer that does not come."""

    missing: Callable[[str], Exception]

    def line(self, question: str, *, empty: bool = False) -> str:  # noqa: ARG002 - a pipe is not asked again
        given = sys.stdin.readline()
        if not given:
            raise self.missing(f"no answer to the question: {question.rstrip('?')}")
        return given.rstrip("\r\n")

    def secret(self, question: str, **_of_a_person: Any) -> str:
        return self.line(question)

    def yes(self, question: str) -> bool:
        return self.line(question).strip().lower() in {"y", "yes"}


Prompter = Person | Script


def answers(missing: Callable[[str], Exception]) -> Prompter:
    """``missing``: what is raised with a sentence where no answer comes."""
    return Person() if sys.stdin.isatty() else Script(missing)


def moment_type(*formats: str) -> "click.DateTime":
    """An argument that is a day or a time, in one of these forms."""
    import click

    like = " or ".join(datetime(2026, 5, 1, 12).strftime(form) for form in formats)  # noqa: DTZ001 - an example

    class Moment(click.DateTime):
        def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
            try:
                return super().convert(value, param, ctx)
            except click.BadParameter:
                self.fail(f"'{value}' is not in the calendar, written like {like}.", param, ctx)

    return Moment(formats)


def put(text: str, *, err: bool = False) -> None:
    """A line as it is, at once: a reader of a log or a pipe does not wait for a buffer."""
    print(text, file=sys.stderr if err else sys.stdout, flush=True)


def say(text: str = "") -> None:
    """Lines of ours that may carry words of others: each line is cleaned, the line breaks stay."""
    put(_as_called(text))


def aside(text: str) -> None:
    """To standard error: what happens meanwhile, where standard output is for the answer."""
    put(_as_called(text), err=True)


def _as_called(text: str) -> str:
    """Cleaned. A command in backticks gets the folder that this program was called with (``--state DIR``)."""
    import click
    from click.core import ParameterSource

    context = click.get_current_context(silent=True)
    if context is not None:
        root = context.find_root()
        for option, folder in root.params.items():
            is_given = root.get_parameter_source(option) is ParameterSource.COMMANDLINE
            if is_given and isinstance(folder, Path):
                called = f"{root.info_name} --{option} {quote(str(folder.absolute()))}"
                text = text.replace(f"`{root.info_name} ", f"`{called} ")
    return "\n".join(plain(line) for line in text.split("\n"))


def answer(value: "Answer | Sequence[Answer] | dict[str, Any]") -> None:
    """As JSON, in ASCII: no control character from outside gets to a terminal."""
    put(json.dumps(value, indent=2, default=_as_json))


def give(value: Any, *lines: str, as_json: bool) -> None:
    """What a command found or did: the value as JSON, or in words; nothing where there are none."""
    if as_json:
        answer(value)
    elif lines:
        say("\n".join(lines))


def _as_json(value: Any) -> Any:
    """What JSON has no form for. Raises TypeError."""
    if hasattr(value, "as_json"):
        return value.as_json()
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    if isinstance(value, datetime):
        from custody.schemas.common import format_time

        return format_time(value)
    return sorted(value) if isinstance(value, frozenset) else asdict(value)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as they must be; the last one runs free."""
    cells = [list(header), *([plain(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(header))]
    for line in cells:
        padded = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        put("  ".join(padded).rstrip())


def tell(program: str, code: str, sentence: str, hint: str, status: Exit, *, as_json: bool) -> Exit:
    """What is wrong and what to do, on standard error; the status to end with."""
    if as_json:
        problem = {"code": code, "sentence": plain(sentence), "hint": _as_called(hint), "status": status}
        put(json.dumps({"error": problem}), err=True)
        return status
    aside(f"{program}: {sentence.rstrip('.')}.")
    if hint:
        aside(f"  {hint}")
    return status
