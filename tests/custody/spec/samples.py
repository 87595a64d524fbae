"""A body or query for any endpoint of the table: what its own schema asks for, filled with what exists."""

from collections.abc import Mapping
from itertools import count
from typing import Any

import httpx

from custody.schemas.call import Call
from tests.support.platform import As

_numbers = count(100_000)  # Long enough to be a password, at whichever test they begin.


def sample(row: Call[Any, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Every required field of what the row takes. ``known`` goes before what the schema suggests, by a
    field's name.
    """
    assert row.shape is not None
    schema = row.shape.model_json_schema()
    definitions = schema.get("$defs", {})
    fields = {**dict.fromkeys(schema.get("required", ())), **_also(row)}
    return {
        name: known[name] if name in known else _value(schema["properties"][name], definitions)
        for name in fields
        if name in schema["properties"]
    }


def send(user: As, row: Call[Any, Any], body: Mapping[str, Any]) -> httpx.Response:
    """The row's call with this body or query; of what its path names, the first."""
    path = row.path.format(**dict.fromkeys(row.path_ids, 1))
    return user.get(path, **body) if row.method == "GET" else user.post(path, dict(body))


def _also(row: Call[Any, Any]) -> dict[str, None]:
    """What a rule of its own asks for, beyond the schema's word."""
    return dict.fromkeys((row.workspace_field, *_RULES.get(row.path, ())))


_RULES = {
    "/api/v1/create-psbt": ("recipients", "amounts_sats"),
    "/api/v1/preview-psbt": ("recipients", "amounts_sats"),
    "/api/v1/sign-psbt": ("psbt_base64",),
    "/api/v1/forward-to-vault": ("sweep",),
    "/api/v1/preview-forward": ("sweep",),
    "/api/v1/contract-calls": ("vault_id",),
    "/auth/two-factor": ("enabled",),
    "/auth/sessions/revoke": ("session_id",),
}


def _value(schema: dict[str, Any], definitions: dict[str, Any]) -> Any:
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rsplit("/", 1)[1]]
    if "anyOf" in schema:
        return _value(schema["anyOf"][0], definitions)
    stated = [schema[word] for word in ("const", "default") if word in schema] + schema.get("enum", [])
    stated += schema.get("examples", [])
    return stated[0] if stated else _of_type(schema, definitions)


def _of_type(schema: dict[str, Any], definitions: dict[str, Any]) -> Any:
    match schema.get("type"):
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case "array":
            return [_value(schema["items"], definitions) for _ in range(schema.get("minItems", 0))]
        case "object":
            required = schema.get("required", ())
            return {name: _value(schema["properties"][name], definitions) for name in required}
        case _:
            return f"sample{next(_numbers)}"
