"""From errors to responses (RFC 9457)."""

import re
from collections.abc import Sequence
from http import HTTPStatus

import structlog
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from custody.common.exchange import phrase_of
from custody.schemas.errors import (
    PROBLEM_CONTENT_TYPE,
    ErrorCode,
    FieldError,
    Problem,
    fault_sentences,
    fault_words,
)
from custody.server.errors import MAX_FAULTS, CustodyError, fault
from custody.server.web.http import UnclearJson

log = structlog.get_logger()

# RFC 9110, section 10.2.3, for responses that a client should retry.
DEFAULT_RETRY_SECONDS = 5
# Pydantic adds the union member's type after the index of a call's argument.
_KIND_OF_ARGUMENT = re.compile(r"^(/args/[0-9]+)/(?:str|int)(?=/|$)")


def trace_id_of(request: Request) -> str:
    return str(getattr(request.state, "trace_id", ""))


def problem(
    request: Request,
    code: ErrorCode,
    detail: str,
    *,
    errors: Sequence[FieldError] = (),
    figures: dict[str, object] | None = None,
    retry_after: int | None = None,
) -> Response:
    """The response to a request that failed."""
    status = code.status
    body = Problem(
        title=phrase_of(status),
        status=status.value,
        detail=detail,
        instance=request.url.path,
        code=code,
        trace_id=trace_id_of(request),
        errors=list(errors),
        figures=figures,
    )
    return Response(
        body.model_dump_json(exclude_none=True),
        status_code=status.value,
        headers=_headers(status, retry_after),
        media_type=PROBLEM_CONTENT_TYPE,
    )


def _headers(status: HTTPStatus, retry_after: int | None) -> dict[str, str]:
    if status is HTTPStatus.UNAUTHORIZED:
        return {"WWW-Authenticate": "Bearer"}
    if status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}:
        return {"Retry-After": str(retry_after or DEFAULT_RETRY_SECONDS)}
    return {}


async def on_custody_error(request: Request, error: CustodyError) -> Response:
    """An error of the use cases: its message, then its hint."""
    return problem(
        request,
        error.code,
        f"{error.detail} {error.hint}",
        errors=error.faults,
        figures=error.figures,
        retry_after=error.retry_after,
    )


async def on_invalid_request(request: Request, error: RequestValidationError) -> Response:
    """A body or query of the wrong shape. The input is not repeated: it may be a password (P49)."""
    faults = [each | {"loc": _within(each["loc"])} for each in error.errors()]
    if any(each["type"] == "json_invalid" for each in faults):
        unclear = error.__cause__ if isinstance(error.__cause__, UnclearJson) else None
        return problem(request, ErrorCode.MALFORMED_JSON, unclear.msg if unclear else "The body is not JSON.")
    if isinstance(error.body, bytes) and error.body:
        sentence = "The body is not sent as JSON: add Content-Type: application/json."
        wrong = fault("/header/Content-Type", sentence, "content_type")
        return problem(request, ErrorCode.VALIDATION, sentence, errors=[wrong])
    errors = [
        fault(_pointer(each["loc"]), fault_words(each), str(each["type"])) for each in faults[:MAX_FAULTS]
    ]
    return problem(request, ErrorCode.VALIDATION, fault_sentences(faults), errors=errors)


def _within(location: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Below the body or the query."""
    return location[1:] if location and location[0] in {"body", "query", "path"} else location


def _pointer(location: tuple[str | int, ...]) -> str:
    """RFC 6901; a header is named as ``/header/<name>``."""
    pointer = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in location)
    return _KIND_OF_ARGUMENT.sub(r"\1", pointer)


_BY_STATUS = {
    HTTPStatus.BAD_REQUEST: (
        ErrorCode.MALFORMED_JSON,
        "The body is nested too deeply, or one of its numbers has thousands of digits.",
    ),
    HTTPStatus.NOT_FOUND: (ErrorCode.NOT_FOUND, "There is nothing at this address."),
    HTTPStatus.METHOD_NOT_ALLOWED: (ErrorCode.METHOD_NOT_ALLOWED, "This path takes another method."),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: (ErrorCode.BODY_TOO_LARGE, "The body is too large."),
}


async def on_http_error(request: Request, error: HTTPException) -> Response:
    """Errors of the framework: no such route, a wrong method, a body that is not text."""
    known = _BY_STATUS.get(HTTPStatus(error.status_code))
    if known is None:
        log.error("unmapped framework error", status=error.status_code)
        return problem(request, ErrorCode.INTERNAL, "The request failed.")
    answer = problem(request, *known)
    answer.headers.update(error.headers or {})
    return answer


async def on_crash(request: Request, error: Exception) -> Response:
    """A bug: the caller gets the trace id, and the log gets the rest."""
    log.error("request crashed", exc_info=error)
    return problem(request, ErrorCode.INTERNAL, "The platform failed; quote the trace id to its operator.")
