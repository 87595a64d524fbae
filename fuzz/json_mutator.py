"""Changes values of JSON, so that it stays JSON: another value, a member more or less, an altered string."""

import json
from random import Random
from typing import Any

from fuzz.target import Change

# Values that readers treat differently, or count wrongly.
_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    2**31,
    2**63,
    -(2**64),
    float("nan"),
    float("inf"),
    "",
    "\x00",
    "\ud800",
    "\u202e",
    "0" * 64,
    [],
    {},
    [[[]]],
)


def mutate(data: bytes, random: Random, change: Change) -> bytes:
    """Changes invalid JSON, and one input in three, as plain bytes."""
    if random.random() < 0.3:
        return change(data)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return change(data)
    for _ in range(random.choice((1, 1, 2))):
        value = _changed(value, random, change)
    return json.dumps(value, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")


def _changed(value: Any, random: Random, change: Change) -> Any:
    match value:
        case {**members} if members and random.random() < 0.8:
            return _changed_members(members, random, change)
        case [_, *_] if random.random() < 0.8:
            return _changed_items(value, random, change)
        case str() if random.random() < 0.7:
            return change(value.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")
        case int() if random.random() < 0.5:
            return value + random.choice((-1, 1, 255, 1 << 32))
        case _:
            return random.choice(_VALUES)


def _changed_members(members: dict[str, Any], random: Random, change: Change) -> dict[str, Any]:
    name = random.choice(sorted(members))
    match random.randrange(8):
        case 0:
            return {known: value for known, value in members.items() if known != name}
        case 1:
            return {**members, _altered(name, change): members[name]}
        case 2:
            return {**members, name: members[random.choice(sorted(members))]}
        case _:
            return {**members, name: _changed(members[name], random, change)}


def _altered(name: str, change: Change) -> str:
    return change(name.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")


def _changed_items(items: list[Any], random: Random, change: Change) -> list[Any]:
    index = random.randrange(len(items))
    match random.randrange(4):
        case 0:
            return items[:index] + items[index + 1 :]
        case 1:
            return [*items, items[index]]
        case _:
            return [*items[:index], _changed(items[index], random, change), *items[index + 1 :]]
