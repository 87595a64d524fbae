"""The specification's words for types, asked of a JSON Schema and of a value."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

# One step into a list's items.
EACH = "[]"
Step = str
Json = Any
_WRAPPED = {
    "nullable string": ("String", str),
    "nullable time": ("Time", str),
    "nullable Int64": ("Int64", int),
}
_JSON_TYPES = {name: {name} for name in ("integer", "string", "boolean", "object", "array")}
# JSON has one kind of number; an id is whole.
_JSON_TYPES |= {"number": {"number", "integer"}, "timestamp": {"string"}}
_PYTHON_TYPES = {"string": str, "boolean": bool, "object": dict, "array": list}


def plain(words: str) -> str:
    """The type in one of the words that this module knows; what follows it explains."""
    word = words.split(",", maxsplit=1)[0].split(";", maxsplit=1)[0].split(" (", maxsplit=1)[0].strip()
    if word.startswith(("array", "object", "timestamp")) and not word.endswith("[]"):
        return next(name for name in ("array", "object", "timestamp") if word.startswith(name))
    if word.startswith("`") or word in {"string URL", "decimal string", "unsigned PSBT"}:
        return "string"
    return word


class Document:
    """An OpenAPI document, with its references followed."""

    def __init__(self, document: Json) -> None:
        self.paths: Json = document["paths"]
        self.raw = document

    def operation(self, path: str) -> tuple[str, Json]:
        """Its method and what is told of it; of two, the reading one."""
        methods = self.paths[path]
        method = "get" if "get" in methods else next(iter(methods))
        return method.upper(), methods[method]

    def asked(self, path: str) -> tuple[dict[str, Json], set[str]]:
        """The fields of its body or query, and which are required."""
        _, operation = self.operation(path)
        if "requestBody" in operation:
            schema = self.follow(operation["requestBody"]["content"]["application/json"]["schema"])
            return schema["properties"], set(schema.get("required", ()))
        query = [given for given in operation.get("parameters", ()) if given["in"] == "query"]
        return {given["name"]: given["schema"] for given in query}, {
            given["name"] for given in query if given["required"]
        }

    def answered(self, path: str, *trail: Step) -> list[Json]:
        """The schemas that the answer may have at the end of the trail."""
        _, operation = self.operation(path)
        schemas = list(self.branches(operation["responses"]["200"]["content"]["application/json"]["schema"]))
        for step in trail:
            deeper = [
                schema["items"] if step == EACH else schema["properties"][step]
                for schema in schemas
                if (step == EACH and "items" in schema) or step in schema.get("properties", ())
            ]
            schemas = [branch for schema in deeper for branch in self.branches(schema)]
        return schemas

    def follow(self, schema: Json) -> Json:
        while "$ref" in schema:
            found = self.raw
            for part in schema["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            schema = found
        return schema

    def branches(self, schema: Json) -> Iterator[Json]:
        """What it may be: each side of an ``anyOf`` or a ``oneOf``."""
        schema = self.follow(schema)
        sides = schema.get("anyOf") or schema.get("oneOf")
        if sides:
            for one in sides:
                yield from self.branches(one)
        else:
            yield schema

    def is_a(self, schema: Json, words: str, *, may_be_null: bool = False) -> bool:
        """Whether the schema says what the specification's words say. No words: anything."""
        word = plain(words)
        types = {branch.get("type"): branch for branch in self.branches(schema)}
        if word == "string or null":
            return set(types) == {"string", "null"}
        if may_be_null:
            types.pop("null", None)
        if word in _WRAPPED:
            name = _WRAPPED[word][0]
            return set(types) == {"object"} and set(types["object"]["properties"]) == {name, "Valid"}
        if word.endswith("[]"):
            return set(types) == {"array"} and self.is_a(types["array"]["items"], word.removesuffix("[]"))
        return word not in _JSON_TYPES or (bool(types) and set(types) <= _JSON_TYPES[word])

    def is_any(self, schemas: list[Json], words: str, *, may_be_null: bool = False) -> bool:
        """As `is_a`, of something whose schemas are its branches."""
        return self.is_a({"anyOf": schemas}, words, may_be_null=may_be_null)


def value_is(value: Json, words: str) -> bool:
    """Whether a value is what the words say."""
    word = plain(words)
    if word == "string or null":
        return value is None or isinstance(value, str)
    if word in _WRAPPED:
        name, kind = _WRAPPED[word]
        return set(value) == {name, "Valid"} and type(value[name]) is kind and type(value["Valid"]) is bool
    if word == "timestamp":
        return value.endswith("Z") and datetime.fromisoformat(value) is not None
    if word in {"integer", "number"}:
        return type(value) is int or (word == "number" and type(value) is float)
    return isinstance(value, _PYTHON_TYPES[word])


def find(value: Json, trail: tuple[Step, ...]) -> list[Json]:
    """Every value at the end of the trail; where some of it is missing, none."""
    found = [value]
    for step in trail:
        if step != EACH:
            found = [item[step] for item in found if isinstance(item, dict) and step in item]
        else:
            found = [item for each in found if isinstance(each, list) for item in each]
    return found
