"""explain: the meaning of an error code, a check, a device's outcome or the platform's code."""

from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from signerd.cli.desk import json_option
from signerd.cli.terminal import answer, say
from signerd.errors import InvalidRequest

if TYPE_CHECKING:
    from signerd.cli.explained import Explained


@click.argument("code")
@json_option
def explain(code: str, as_json: bool) -> None:
    """What a code means, and what to do: of an error, a check, a device's outcome, or the platform's."""
    one = _found(code)
    if as_json:
        answer(one)
    else:
        _tell(one)


def _found(code: str) -> "Explained":
    # Imported here: the table loads devices and checks, which are slow to import.
    from signerd.cli.explained import table

    known = table()
    if found := known.get(code) or known.get(code.upper()):
        return found
    near = get_close_matches(code, known, n=3)
    raise InvalidRequest(
        f"No error, check, outcome of a device or answer of the platform has the code '{code}'.",
        hint=f"Did you mean {' or '.join(near)}?" if near else "Codes are written as paid-twice.",
    )


def _tell(one: "Explained") -> None:
    say(f"{one.code} ({one.kind})")
    say(f"  {one.meaning}")
    if one.advice:
        say(f"  {one.advice}")
    if one.who:
        say(f"  Who can: {one.who}.")
    if one.exit_status is not None:
        say(f"  Exit status {one.exit_status}.")
