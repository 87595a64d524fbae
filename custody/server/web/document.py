"""What the OpenAPI document says of an endpoint: what it does, who may call it, and the codes that may come with each refusal."""

import inspect
import re
from collections import defaultdict
from typing import Any

from custody.schemas.common import MAX_INT64
from custody.schemas.errors import PROBLEM_CONTENT_TYPE, ErrorCode
from custody.server.domain.errors import (
    CustodyError,
    DatabaseUnavailable,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    Invalid,
    NotFound,
    PermissionDenied,
    RateLimited,
    TokenExpired,
    Unauthenticated,
)
from custody.server.web.endpoint import Door, Endpoint
from custody.server.web.problems import STATUS

_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_PROBLEM = {"$ref": "#/components/schemas/Problem"}


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """The framework documents every answer as plain JSON; refusals have a media type of their own (RFC 9457)."""
    _make_bounds_whole(document)
    for path in document["paths"].values():
        for operation in path.values():
            content = operation["responses"]["default"]["content"]
            if "application/json" in content:
                content[PROBLEM_CONTENT_TYPE] = content.pop("application/json")
    return document


def _make_bounds_whole(node: object) -> None:
    """The framework's model of the document keeps every bound as a float, and the largest int64 is none."""
    if isinstance(node, list):
        for each in node:
            _make_bounds_whole(each)
    if isinstance(node, dict):
        for name, value in node.items():
            if name in _BOUNDS and isinstance(value, float) and value.is_integer():
                node[name] = min(int(value), MAX_INT64)
            else:
                _make_bounds_whole(value)


def operation_id_of(endpoint: Endpoint) -> str:
    """Programs are generated from it: it follows from method and path, and from nothing else."""
    return "_".join([endpoint.method.lower(), *re.findall(r"\w+", endpoint.path)])


def description_of(endpoint: Endpoint) -> str:
    """What the handler says of itself, and who may call it."""
    text = inspect.getdoc(endpoint.handler) or ""
    return f"{text}\n\n{_who(endpoint)}".strip()


def _who(endpoint: Endpoint) -> str:
    if endpoint.permissions:
        return f"Permission: {' or '.join(sorted(endpoint.permissions))}."
    if endpoint.needs is Door.OPEN:
        return "Nobody need be signed in."
    return "Whoever is signed in." if endpoint.needs is Door.SIGNED_IN else "Any member of the workspace."


def refusals_of(endpoint: Endpoint) -> dict[int | str, dict[str, Any]]:
    """FastAPI's ``responses``: one for each status, whose problem carries one of the codes that belong to it."""
    by_status: dict[int, list[str]] = defaultdict(list)
    for code in sorted(_codes(endpoint)):
        by_status[STATUS[code].value].append(code.value)
    return {status: _refusal(codes) for status, codes in sorted(by_status.items())}


def _codes(endpoint: Endpoint) -> set[ErrorCode]:
    errors: list[type[CustodyError]] = [DatabaseUnavailable, *endpoint.refuses]
    codes = {ErrorCode.INTERNAL}
    if endpoint.needs is not Door.OPEN:
        errors += [Unauthenticated, TokenExpired, RateLimited]
    if not isinstance(endpoint.needs, Door):
        errors += [NotFound, PermissionDenied]
    if endpoint.path_ids:
        errors += [NotFound, Invalid]
    if endpoint.creates:
        errors += [IdempotencyInProgress, IdempotencyKeyReused, Invalid]
    if endpoint.takes is not None:
        errors.append(Invalid)
        if endpoint.method == "POST":
            codes |= {ErrorCode.MALFORMED_JSON, ErrorCode.BODY_TOO_LARGE}
    return codes | {error.code for error in errors}


def _refusal(codes: list[str]) -> dict[str, Any]:
    schema = {"allOf": [_PROBLEM, {"properties": {"code": {"enum": codes}}}]}
    return {"description": ", ".join(codes), "content": {PROBLEM_CONTENT_TYPE: {"schema": schema}}}
