"""Shared by the commands of ``custody``: common options, amounts as they are typed (with their unit, and
never as a fraction of a satoshi), and how a command ends with an error.
"""

import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, NoReturn

import click

from custody.common import terminal
from custody.common.private_files import write_new
from custody.common.terminal import Exit, Prompter, answer, answers, say, table, tell
from custody.common.text import SATS_PER_BTC

_JSON: Final = "custody.as_json"


def _note_json(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    context.meta[_JSON] = wanted


_json = partial(click.option, "--json", is_flag=True, expose_value=False, callback=_note_json)
json_option = _json(help="Answer with one JSON value.")
lines_option = _json(help="Lines of JSON, for programs.")


def wants_json() -> bool:
    """Whether the command that runs was given ``--json``."""
    context = click.get_current_context(silent=True)
    return context is not None and context.meta.get(_JSON, False)


def give(value: Any, *lines: str) -> None:
    """What the command found or did: the value as JSON, or in words."""
    terminal.give(value, *lines, as_json=wants_json())


def give_list(
    items: Sequence[Any], header: Sequence[str], rows: Iterable[Sequence[str]], empty: str = ""
) -> None:
    """``rows``: of ``items``, for a person. ``empty``: said in place of a table without rows."""
    if wants_json():
        answer(items)
    elif items or not empty:
        table(header, list(rows))
    else:
        say(empty)


class Stop(click.ClickException):
    """Ends a command: what is wrong, what to do, and the exit status. ``code`` is for programs."""

    def __init__(
        self, sentence: str, hint: str = "", status: Exit = Exit.FAILED, *, code: str | None = None
    ) -> None:
        super().__init__(sentence)
        self.hint = hint
        self.status = status
        self.code = code or status.name.lower().replace("_", "-")
        self.exit_code = int(status)  # type: ignore[misc] # of the class for click: here of each
        self._as_json = wants_json()

    def show(self, file: IO[Any] | None = None) -> None:  # noqa: ARG002 - click's own signature
        tell("custody", self.code, self.message, self.hint, self.status, as_json=self._as_json)


def fail(sentence: str, hint: str, status: Exit = Exit.FAILED) -> NoReturn:
    """End the command."""
    raise Stop(sentence, hint, status)


def write_file(file: Path, content: bytes | Iterable[bytes]) -> None:
    """A new file that only this user can read. Raises Stop, also where one is there."""
    try:
        write_new(file, content)
    except OSError as error:
        fail(f"{file} cannot be written: {error.strerror}", "Name another file.")


def own_answers() -> Prompter:
    """Where answers are read from. Passwords are never arguments, which every program on the machine can read
    (P49).
    """
    hint = (
        "Type it, or give one line for each question on standard input; --yes where it is to be answered yes."
    )
    return answers(lambda sentence: Stop(sentence, hint, Exit.USAGE, code="answer-missing"))


_BTC: Final = re.compile(r"(0|[1-9][0-9]{0,7})(?:\.([0-9]{1,8}))?\s*btc", re.ASCII | re.IGNORECASE)
MOST_BTC: Final = 21_000_000
_SATS: Final = re.compile(
    r"([1-9][0-9]{0,2}(?:,[0-9]{3})+|0|[1-9][0-9]{0,15})\s*sats?", re.ASCII | re.IGNORECASE
)


def parse_amount(text: str) -> int:
    """Satoshis of ``0.25BTC``, ``0.25 btc``, ``25000 sats`` or ``25,000sats``. Raises ValueError."""
    if match := _BTC.fullmatch(text.strip()):
        value = int(match[1]) * SATS_PER_BTC + int((match[2] or "").ljust(8, "0"))
    elif match := _SATS.fullmatch(text.strip()):
        value = int(match[1].replace(",", ""))
    else:
        raise ValueError(f"'{text}' is not an amount: write it with its unit, like 0.25BTC or 25000sats")
    if value > MOST_BTC * SATS_PER_BTC:
        raise ValueError(f"'{text}' is more than the {MOST_BTC:,} bitcoin that there can be")
    return value


class Amount(click.ParamType[int]):
    """An amount on the command line, as satoshis."""

    name = "amount"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return value if isinstance(value, int) else parse_amount(value)
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)
