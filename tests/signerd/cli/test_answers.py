"""What each command reads of the daemon's answers. The command line reads them as plain JSON, without their
shapes.

Every function of the command line and of signerd-hwi that is given an answer's shape, and nothing else than
plain values beside it, is found by its annotations. It is called with answers that its shape allows, once as
the shape and once as the command line reads the same JSON, and has to say the same.
"""

import collections.abc
import inspect
import pkgutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from random import Random
from types import MappingProxyType, ModuleType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel

import signerd.cli
import signerd.hwi
from signerd.asking import parse
from signerd.core.states import STATES
from signerd.shapes import account, proposals, vaults

PLAIN = (str, int, bool, float, NoneType)
SEQUENCES = (tuple, list, Sequence, Iterable, Collection)
# Words of which a command knows the meaning; any other text is shown as it is.
WORDS = ("state", "kind", "outcome")
TEXTS = ("", "a", "2026-01-02T03:04:05Z", "b\u00fc `c`")
TRIES = 20


def is_shape(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def has_shape(kind: Any) -> bool:
    return is_shape(kind) or any(map(has_shape, get_args(kind)))


def is_readable(kind: Any) -> bool:
    """Whether it is made of shapes and plain values."""
    if get_origin(kind) is Literal:
        return True
    parts = [part for part in get_args(kind) if part is not Ellipsis]
    known = is_shape(kind) or kind in PLAIN or get_origin(kind) in (*SEQUENCES, UnionType, Union)
    return known and all(map(is_readable, parts))


def readers() -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    for package in (signerd.cli, signerd.hwi):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if found.name.endswith("__main__"):
                continue
            module = import_module(found.name)
            for name, function in inspect.getmembers(module, inspect.isfunction):
                if function.__module__ != found.name:
                    continue
                takes = taken_by(function, module)
                if any(map(has_shape, takes.values())) and all(map(is_readable, takes.values())):
                    yield f"{found.name}.{name}", function, takes


def taken_by(function: Callable[..., Any], module: ModuleType) -> dict[str, Any]:
    """The types of its arguments; empty where one is neither of its module nor an answer's shape."""
    told = {name: kind for name, kind in function.__annotations__.items() if name != "return"}
    names = {**vars(collections.abc), **vars(account), **vars(proposals), **vars(vaults), **vars(module)}
    try:
        return get_type_hints(type("Taken", (), {"__annotations__": told}), names)
    except (NameError, TypeError):
        return {}


READERS = MappingProxyType({name: (function, takes) for name, function, takes in readers()})


def any_of(kind: Any, draw: Random, name: str = "") -> Any:
    """A value that the daemon may send. Of words that are read, one that is known."""
    origin, parts = get_origin(kind), get_args(kind)
    if is_shape(kind):
        fields = kind.model_fields.items()
        return kind.model_construct(**{field: any_of(told.annotation, draw, field) for field, told in fields})
    if origin in (Literal, UnionType, Union):
        part = draw.choice(parts)
        return part if origin is Literal else any_of(part, draw, name)
    if origin in (dict, Mapping):
        names = draw.sample(["replaced_fee_sats", "other"], draw.randint(0, 2))
        return {name: any_of(parts[1], draw) for name in names}
    if origin in SEQUENCES:
        # A pair has its types, a list of any length one and an ellipsis.
        each = parts if Ellipsis not in parts and origin is tuple else parts[:1] * draw.randint(0, 2)
        return tuple(any_of(part, draw) for part in each)
    if kind is str:
        return draw.choice(sorted(STATES)) if name in WORDS else draw.choice(TEXTS)
    return {bool: draw.random() < 0.5, int: draw.choice((0, 1, 2**53)), float: 0.5, NoneType: None}[kind]


def as_sent(kind: Any, value: Any) -> Any:
    """As the command line reads it."""
    if not has_shape(kind) or value is None:
        return value
    if isinstance(value, tuple):
        return [as_sent(type(each), each) for each in value]
    return parse(value.model_dump_json())


def said_by(function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    said = function(**given)
    return list(said) if isinstance(said, Iterator) else said


def test_the_answers_of_the_commands_are_read_by_many_functions():
    assert {"signerd.cli.words.psbt_text", "signerd.cli.words.proposal_text"} <= READERS.keys()
    assert len(READERS) > 50


@pytest.mark.parametrize("name", READERS)
def test_what_is_read_of_an_answer_is_in_its_shape(name):
    for seed in range(TRIES):
        read_alike(name, Random(seed))


def read_alike(name: str, draw: Random) -> None:
    function, takes = READERS[name]
    whole = {one: any_of(kind, draw, one) for one, kind in takes.items()}
    plain = {one: as_sent(kind, whole[one]) for one, kind in takes.items()}
    try:
        expected = said_by(function, whole)
    except Exception as error:  # noqa: BLE001 - whatever a shape makes it say, the same answer as sent must
        with pytest.raises(type(error)):
            said_by(function, plain)
        return
    found = said_by(function, plain)
    assert comparable(found) == comparable(expected)


def comparable(said: Any) -> Any:
    """An answer that is passed on, as JSON; tuples come as lists."""
    if isinstance(said, BaseModel):
        return said.model_dump(mode="json")
    if hasattr(type(said), "as_json"):
        return said.as_json()
    if isinstance(said, tuple | list):
        return [comparable(each) for each in said]
    return str(said) if isinstance(said, Exception) else said
