"""The calls as an OpenAPI 3.1 document, generated at the first request for it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from custody._version import __version__
from custody.common.exchange import phrase_of
from signerd.api.described import described
from signerd.errors import leaves
from signerd.loopback.binding import BODY, JSON, answer_of, arguments
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
# The call's id and the argument's name, which is empty for the answer.
_Key = tuple[str, str]
_ANSWER = ""


def describe(table: "Iterable[described[..., Any]]", prefix: str) -> dict[str, Any]:
    shapes = [shape for row in table for shape in _shapes(row)]
    # In one call, so that shared models are defined once, under one name.
    schemas, shared = TypeAdapter.json_schemas(shapes, ref_template=_REFERENCE)
    components = {key: schema for (key, _mode), schema in schemas.items()}
    paths: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for row in table:
        paths[prefix + row.path][row.method.lower()] = _operation(row, components)
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


def _shapes(row: "described[..., Any]") -> list[tuple[_Key, JsonSchemaMode, TypeAdapter[Any]]]:
    name, answer = row.operation, answer_of(row)
    written: list[tuple[_Key, JsonSchemaMode, TypeAdapter[Any]]] = [
        ((name, one.name), "validation", one.adapter) for one in arguments(row)
    ]
    return written if answer is None else [*written, ((name, _ANSWER), "serialization", answer)]


def _operation(row: "described[..., Any]", schemas: Mapping[_Key, Any]) -> dict[str, Any]:
    name, parameters = row.operation, arguments(row)
    described: dict[str, Any] = {
        "operationId": name,
        "summary": " ".join(row.paragraphs()[0].split()),
        "x-needs": row.needs.value,
        "parameters": [
            {"name": p.alias, "in": p.place, "required": p.required, "schema": schemas[name, p.name]}
            for p in parameters
            if p.place != BODY
        ],
        "responses": {
            **_answer(row, schemas),
            **{status: {"$ref": f"#/components/responses/{status}"} for status in _problems()},
        },
    }
    for one in parameters:
        if one.place == BODY:
            described["requestBody"] = {"required": True, **_json(schemas[name, one.name])}
    return described


def _answer(row: "described[..., Any]", schemas: Mapping[_Key, Any]) -> dict[str, Any]:
    schema = schemas.get((row.operation, _ANSWER))
    if schema is not None:
        return {str(HTTPStatus.OK.value): {"description": "The answer", **_json(schema)}}
    if row.media_type is not None:
        content = {row.media_type: {"schema": {"type": "string"}}}
        return {str(HTTPStatus.OK.value): {"description": "The answer", "content": content}}
    return {str(HTTPStatus.NO_CONTENT.value): {"description": "Done"}}


def _json(schema: Any) -> dict[str, Any]:
    return {"content": {JSON: {"schema": schema}}}
