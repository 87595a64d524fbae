"""An answer of the daemon's as it came, without its shape: for a program that only prints it, and starts anew
for each question.

Shapes are pydantic's classes: to load it and to make them takes longer than all the rest of a command.
"""

import json
from typing import Any

from signerd.errors import DaemonFailed


class Values:
    """An object of JSON: an attribute for each of its fields, as the shape has them. Lists stay lists."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def __getattr__(self, name: str) -> Any:
        """Raises DaemonFailed for a field that the answer has not."""
        try:
            return self._fields[name]
        except KeyError:
            raise DaemonFailed(
                f"the daemon's answer has no '{name}': another version of signerd is running",
                hint="End it and start this one.",
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    def as_json(self) -> dict[str, Any]:
        return {name: _as_json(value) for name, value in self._fields.items()}


def _as_json(value: Any) -> Any:
    if isinstance(value, Values):
        return value.as_json()
    return [_as_json(each) for each in value] if isinstance(value, list) else value


def parse(content: bytes | str) -> Any:
    """Raises ValueError."""
    try:
        found = json.loads(content, object_hook=Values)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(found, Values | list):
        raise ValueError("neither an object nor a list")  # noqa: TRY004 - as what is no JSON
    return found
