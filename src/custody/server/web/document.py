"""What the OpenAPI document says of an endpoint's refusals: the codes that may come with each status."""

from collections import defaultdict
from typing import Any

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

_PROBLEM = {"$ref": "#/components/schemas/Problem"}


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
