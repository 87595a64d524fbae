"""explain: what each code means, in one table: for the command, and for docs/sign/codes.md.

It has the codes of errors, checks, devices' outcomes and the platform. The meaning of an error or an outcome
stands at its class, and the advice is its hint. The meaning of a check is in the table of checks; that of the
platform's codes in custody.schemas.errors.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType

import click

from signerd.cli.desk import Desk, answering
from signerd.errors import InvalidRequest, leaves

ERROR, CHECK, DEVICE, PLATFORM = "error", "check", "device outcome", "the platform's"


@dataclass(frozen=True)
class Explained:
    """``exit_status``: of a command that ends with this error; None for other codes. ``who``: the person who
    can follow the advice; None where it is the reader.
    """

    code: str
    kind: str
    meaning: str
    advice: str
    exit_status: int | None = None
    who: str | None = None


_OF_CHECKS = (
    "`signerd show ID` says what it found, and whether it refuses or asks. What it refuses is never signed. "
    "Where it only asks, and you still want to sign: `signerd approve ID --acknowledge CODE`."
)
_OF_RULES = "A rule of your own, in rules.toml: `signerd rules show` lists them."


@cache
def table() -> Mapping[str, Explained]:
    """By code; an error before a check or an outcome of the same name."""
    return MappingProxyType({one.code: one for one in _explained()})


def _explained() -> Iterator[Explained]:
    # The tables of checks, devices and the platform are imported here: they are slow to import.
    from custody.schemas.errors import ErrorCode
    from firmware_bridge.errors import BridgeError
    from signerd.core.checks.table import CHECKS, Stage

    for outcome in BridgeError.__subclasses__():
        yield Explained(outcome.code, DEVICE, outcome.sentence, outcome.hint)
    for name, check in CHECKS.items():
        rule = check.stage is Stage.RULES
        meaning = _OF_RULES if rule else f"A check before your device is asked. Passes if: {check.sentence}"
        yield Explained(name, CHECK, meaning, _OF_CHECKS)
    for one in ErrorCode:
        yield Explained(one.value, PLATFORM, one.meaning, one.advice, who=one.who)
    for kind in leaves():
        yield Explained(kind.code, ERROR, kind.meaning, kind.default_hint, kind.exit_status)


@click.argument("code")
@answering
def explain(desk: Desk, code: str) -> None:
    """What a code means, and what to do: of an error, a check, a device's outcome, or the platform's."""
    one = _found(code)
    status = None if one.exit_status is None else f"Exit status {one.exit_status}."
    more = (one.meaning, one.advice, f"Who can: {one.who}." if one.who else None, status)
    desk.give(one, f"{one.code} ({one.kind})", *(f"  {words}" for words in more if words))


def _found(code: str) -> Explained:
    known = table()
    if explained := known.get(code) or known.get(code.upper()):
        return explained
    near = get_close_matches(code, known, n=3)
    raise InvalidRequest(
        f"No error, check, outcome of a device or answer of the platform has the code '{code}'.",
        hint=f"Did you mean {' or '.join(near)}?" if near else "Codes are written as paid-twice.",
    )
