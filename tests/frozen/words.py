"""The words that databases, journals, logs and scripts contain, read from the source."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from custody.common.terminal import Exit
from signerd.core.checks.table import CHECKS
from signerd.core.states import State
from signerd.errors import SignerdError, leaves

ROOT = Path(__file__).parents[2]
# The form of the platform's stored words: audit actions, statuses, error codes.
_STORED = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]*)+")


@cache
def words() -> dict[str, object]:
    return {
        "checks": {name: [list(check.attacks), check.lowered] for name, check in sorted(CHECKS.items())},
        "exit_statuses": {status.name: status.value for status in Exit},
        "exit_statuses_of_errors": {
            kind.__name__: kind.exit_status.name for kind in (*SignerdError.__subclasses__(), *leaves())
        },
        "signerd_states": sorted(State),
        "signerd_notes": sorted(_note_kinds()),
        "platform": sorted(_literals("custody", _STORED)),
    }


def _literals(folder: str, form: re.Pattern[str]) -> set[str]:
    return {
        node.value
        for node in _nodes(folder)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and form.fullmatch(node.value)
    }


def _note_kinds() -> Iterator[str]:
    """The kinds of entries in a signer's chain of decisions."""
    for node in _nodes("signerd"):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Note":
            kind = node.args[0]
            if isinstance(kind, ast.Constant):
                yield str(kind.value)


def _nodes(folder: str) -> Iterator[ast.AST]:
    for file in sorted((ROOT / folder).rglob("*.py")):
        yield from ast.walk(ast.parse(file.read_text(encoding="utf-8")))
