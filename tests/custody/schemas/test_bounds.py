"""Every integer, text, list and mapping that an answer may hold has a bound in its schema (F)."""

import importlib
import json
import pkgutil
import re
from collections.abc import Callable, Iterator
from math import inf
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

import custody.client
from custody.schemas.calls import CALLS
from custody.schemas.common import MAX_INT64, Few, Int64, Request
from custody.schemas.errors import MAX_TOLD, FieldError, Problem
from custody.schemas.proposals import CreatePsbtRequest
from signerd.account import wire

# A webhook's delivery is no answer: it is read by its receiver, when its signature is good.
MODULES = [
    importlib.import_module(f"custody.client.{each.name}")
    for each in pkgutil.iter_modules(custody.client.__path__)
    if each.name != "webhooks"
]
# One repetition without an end, in a pattern.
_ENDLESS = re.compile(r"(?<!\\)[*+]|\{[0-9]+,\}")


def answers() -> Iterator[tuple[str, TypeAdapter[Any]]]:
    """The models as which a module of calls, or signerd, reads an answer."""
    yield "Problem", TypeAdapter(Problem)
    for module in [*MODULES, wire]:
        for name, value in vars(module).items():
            if isinstance(value, TypeAdapter):
                yield f"{module.__name__}.{name}", value
            elif isinstance(value, type) and issubclass(value, BaseModel) and not issubclass(value, Request):
                yield f"{module.__name__}.{name}", TypeAdapter(value)
    for call in CALLS:
        reader = call.reader
        yield f"{call.method} {call.path}", reader if isinstance(reader, TypeAdapter) else TypeAdapter(reader)


ANSWERS = dict(answers())


def unbounded(node: Any, place: str) -> Iterator[str]:
    """The places of a JSON schema that take a value of any size."""
    if not node.keys().isdisjoint({"$ref", "enum", "const"}) or node.get("type") in {"boolean", "null"}:
        return
    several = node.get("anyOf", node.get("oneOf"))
    if several is not None:
        if "maximum" in several[0] and several[0].get("type") == "number":
            return  # A decimal: what is read is its value.
        for number, each in enumerate(several):
            yield from unbounded(each, f"{place}|{number}")
    elif "properties" in node:
        for name, each in node["properties"].items():
            yield from unbounded(each, f"{place}.{name}")
    else:
        kind = node.get("type", "anything")
        if not BOUNDED.get(kind, lambda _: False)(node):
            yield f"{place}: {kind}"
        for part in node.keys() & {"items", "additionalProperties"}:
            yield from unbounded(node[part] if isinstance(node[part], dict) else {}, f"{place}[]")


def _is_bounded_text(node: dict[str, Any]) -> bool:
    ends = "pattern" in node and not _ENDLESS.search(node["pattern"])
    return ends or "maxLength" in node or node.get("format") in {"date", "date-time"}


BOUNDED: dict[str, Callable[[dict[str, Any]], bool]] = {
    "integer": lambda node: (
        node.get("minimum", -inf) >= -MAX_INT64 - 1 and node.get("maximum", inf) <= MAX_INT64
    ),
    "string": _is_bounded_text,
    "array": lambda node: "maxItems" in node,
    "object": lambda node: "maxProperties" in node,
}


@pytest.mark.parametrize("name", ANSWERS)
def test_f_every_value_of_every_answer_is_bounded(name: str) -> None:
    schema = ANSWERS[name].json_schema(mode="validation")
    found = list(unbounded({key: value for key, value in schema.items() if key != "$defs"}, name))
    for shape, inner in schema.get("$defs", {}).items():
        found += unbounded(inner, shape)
    assert not found


@pytest.mark.parametrize("number", [MAX_INT64 + 1, -MAX_INT64 - 2, 2**64, 10**400])
def test_f_a_number_that_no_database_holds_is_refused(number: int) -> None:
    adapter = TypeAdapter(Int64)
    with pytest.raises(ValidationError):
        adapter.validate_json(str(number))
    assert adapter.validate_json(str(MAX_INT64)) == MAX_INT64
    assert adapter.validate_json(str(-MAX_INT64 - 1)) == -MAX_INT64 - 1


@pytest.mark.parametrize("entry", ["{}", '"x"', "[]"])
def test_f_a_list_of_bad_entries_has_one_error(entry: str) -> None:
    """An error for each would take more memory than the answer: a hundred bytes for every three."""
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(Few[Int64]).validate_json(f"[{','.join([entry] * 100_000)}]")
    assert caught.value.error_count() == 1


def test_a_refusal_is_cut_and_read_however_long_it_is() -> None:
    long = "x" * 100_000
    sent = dict.fromkeys(("title", "detail", "instance"), long) | {"status": 422, "code": "VALIDATION"}
    sent["errors"] = [dict.fromkeys(("pointer", "code", "detail"), long)]
    told = Problem.model_validate_json(json.dumps(sent))
    assert {len(text) for text in (told.title, told.detail, told.instance)} == {MAX_TOLD}
    assert told.errors == [FieldError(pointer=long, code=long, detail=long)]


def _asked(number: str) -> CreatePsbtRequest:
    read = json.loads(number)
    body = {"wallet_id": "v", "tx_type": "send", "recipients": ["x"]}
    return CreatePsbtRequest.model_validate(body | {"workspace_id": read, "amounts_sats": [read]})


@pytest.mark.parametrize("number", ["1000.0", "1e3", "1000"])
def test_a_whole_number_may_be_written_with_a_point(number: str) -> None:
    """As JSON Schema has it, and the OpenAPI document with it."""
    asked = _asked(number)
    assert (asked.workspace_id, asked.amounts_sats) == (1000, [1000])


@pytest.mark.parametrize("number", ["1000.5", "true", "9007199254740992.0", "1e400", '"1000"'])
def test_no_other_value_is_taken_for_a_whole_number(number: str) -> None:
    """From 2**53 on a number with a point may not be the one that was written."""
    with pytest.raises(ValidationError, match=r"whole number|int"):
        _asked(number)
