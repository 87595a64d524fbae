"""The table of routes as an OpenAPI 3.1 document, generated at the first request for it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from custody._version import __version__
from custody.phrases import phrase_of
from signerd.errors import leaves
from signerd.loopback.binding import JSON, Argument, Endpoint, In, answer_of, arguments
from signerd.loopback.endpoints import Route
from signerd.problems import CONTENT_TYPE

_REFERENCE = "#/components/schemas/{model}"
_WORD, _NUMBER = {"type": "string"}, {"type": "integer"}
_SAID = {"type": _WORD, "title": _WORD, "status": _NUMBER, "code": _WORD, "detail": _WORD, "hint": _WORD}
# What ``problems.problem`` writes.
PROBLEM: Mapping[str, Any] = MappingProxyType(
    {
        "type": "object",
        "description": "A problem (RFC 9457). `code` is stable; `detail` and `hint` are for a person.",
        "properties": {**_SAID, "platform_code": _WORD, "platform_status": _NUMBER},
        "required": list(_SAID),
        "additionalProperties": False,
    }
)
# The endpoint's name and the argument's, which is empty for the answer.
_Key = tuple[str, str]
_ANSWER = ""


def describe(table: Sequence[Route[Any]], prefix: str) -> dict[str, Any]:
    asked = [shape for row in table for shape in _shapes(row.endpoint)]
    # In one call, so that shared models are defined once, under one name.
    schemas, shared = TypeAdapter.json_schemas(asked, ref_template=_REFERENCE)
    found = {key: schema for (key, _mode), schema in schemas.items()}
    paths: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for row in table:
        paths[prefix + row.path][row.method.lower()] = _operation(row, found)
    return {
        "openapi": "3.1.0",
        "info": {"title": "signerd", "version": __version__},
        "paths": dict(paths),
        "components": {
            "schemas": {**shared.get("$defs", {}), "Problem": dict(PROBLEM)},
            "responses": _problems(),
        },
    }


def _problems() -> dict[str, Any]:
    """A response per status of our errors. The error itself is told by its `code`."""
    content = {CONTENT_TYPE: {"schema": {"$ref": _REFERENCE.format(model="Problem")}}}
    return {
        str(status.value): {"description": phrase_of(status), "content": content}
        for status in sorted({leaf.http_status for leaf in leaves()})
    }


def _shapes(endpoint: Endpoint) -> list[tuple[_Key, JsonSchemaMode, TypeAdapter[Any]]]:
    name, answer = endpoint.__name__, answer_of(endpoint)
    written: list[tuple[_Key, JsonSchemaMode, TypeAdapter[Any]]] = [
        ((name, one.name), "validation", one.adapter) for one in arguments(endpoint)
    ]
    return written if answer is None else [*written, ((name, _ANSWER), "serialization", answer)]


def _operation(row: Route[Any], schemas: Mapping[_Key, Any]) -> dict[str, Any]:
    name, asked = row.endpoint.__name__, arguments(row.endpoint)
    described: dict[str, Any] = {
        "operationId": name,
        "summary": row.summary,
        "x-needs": row.needs.value,
        "parameters": [_parameter(one, schemas[name, one.name]) for one in asked if one.place is not In.BODY],
        "responses": {
            **_answer(row, schemas),
            **{status: {"$ref": f"#/components/responses/{status}"} for status in _problems()},
        },
    }
    for one in asked:
        if one.place is In.BODY:
            described["requestBody"] = {"required": True, **_json(schemas[name, one.name])}
    return described


def _answer(row: Route[Any], schemas: Mapping[_Key, Any]) -> dict[str, Any]:
    schema = schemas.get((row.endpoint.__name__, _ANSWER))
    if schema is not None:
        return {str(HTTPStatus.OK.value): {"description": "The answer", **_json(schema)}}
    if row.call.media_type is not None:
        content = {row.call.media_type: {"schema": {"type": "string"}}}
        return {str(HTTPStatus.OK.value): {"description": "The answer", "content": content}}
    return {str(HTTPStatus.NO_CONTENT.value): {"description": "Done"}}


def _parameter(one: Argument, schema: Any) -> dict[str, Any]:
    return {"name": one.alias, "in": one.place.value, "required": one.required, "schema": schema}


def _json(schema: Any) -> dict[str, Any]:
    return {"content": {JSON: {"schema": schema}}}
