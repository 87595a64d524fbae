"""An OpenAPI document as one page of Markdown: each call, its parameters and answers, then the schemas."""

import json
from collections.abc import Iterator
from typing import Any

METHODS = ("get", "post", "put", "patch", "delete")


def rendered(title: str, document: dict[str, Any]) -> str:
    return "\n".join(_lines(title, document)) + "\n"


def _lines(title: str, document: dict[str, Any]) -> Iterator[str]:
    yield f"# {title}\n"
    yield f"Version {document['info']['version']}. Made from the OpenAPI document that the program serves.\n"
    yield "## Calls\n"
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield from _call(method.upper(), path, item[method])
    yield "## Shapes\n"
    for name, schema in sorted(document["components"]["schemas"].items()):
        yield from _shape(name, schema)


def _call(method: str, path: str, call: dict[str, Any]) -> Iterator[str]:
    yield f"### `{method} {path}`\n"
    for words in (call.get("summary"), call.get("description")):
        if words:
            yield f"{_safe(words)}\n"
    if call.get("parameters"):
        yield from _table(
            ("parameter", "in", "type", "needed", "meaning"),
            [
                (
                    f"`{one['name']}`",
                    one["in"],
                    _kind(one["schema"]),
                    "yes" if one.get("required") else "",
                    one.get("description", ""),
                )
                for one in call["parameters"]
            ],
        )
    for body in call.get("requestBody", {}).get("content", {}).values():
        yield f"Takes {_kind(body['schema'])}.\n"
    yield from _table(("status", "answer"), list(_answers(call["responses"])))


def _answers(responses: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for status, answer in responses.items():
        if "$ref" in answer:
            continue
        shapes = [_kind(one["schema"]) for one in answer.get("content", {}).values() if "schema" in one]
        words = answer.get("description", "")
        if status.startswith("2"):
            yield status, ", ".join(shapes) or words
        elif status != "default":
            yield status, words


def _shape(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"### {name} {{ #{name} }}\n"
    if schema.get("description"):
        yield f"{_safe(schema['description'])}\n"
    if "properties" not in schema:
        yield f"{_kind(schema)}\n"
        return
    needed = set(schema.get("required", ()))
    yield from _table(
        ("field", "type", "needed", "meaning"),
        [
            (f"`{field}`", _kind(of), "yes" if field in needed else "", of.get("description", ""))
            for field, of in schema["properties"].items()
        ],
    )


def _kind(schema: dict[str, Any]) -> str:  # noqa: PLR0911 - one for each form of a schema
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(_kind(one) for one in schema[several])
    if "allOf" in schema:
        return _kind(schema["allOf"][0])
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(one)}`" for one in schema["enum"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"map to {_kind(schema['additionalProperties'])}"
    return str(schema.get("type", "any value"))


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    if rows:
        yield f"| {' | '.join(head)} |"
        yield "|" + "---|" * len(head)
        for row in rows:
            yield f"| {' | '.join(_cell(cell) for cell in row)} |"
        yield ""


def _cell(text: str) -> str:
    return _safe(" ".join(text.split())).replace("|", "\\|")


def _safe(text: str) -> str:
    """Escapes HTML: descriptions are reStructuredText or plain text."""
    return text.replace("``", "`").replace("<", "&lt;")
