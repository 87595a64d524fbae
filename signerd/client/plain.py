"""Answers of the daemon without validation, for the command line.

Importing pydantic and building the shapes takes longer than the rest of a command.
"""

import json
from typing import Any

from signerd.errors import DaemonFailed


class Values:
    """A JSON object with its fields as attributes, as its shape would have them."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def __getattr__(self, name: str) -> Any:
        """Raises DaemonFailed for a missing field."""
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
        raise ValueError("neither an object nor a list")  # noqa: TRY004 - as for text that is not JSON
    return found
