"""FastAPI's routes, built from the declared calls: from a request to the response of each, and the OpenAPI
document's text on it.

A route authenticates its caller before it reads more than a small body, unless the endpoint is open.
"""

import inspect
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Mapping
from contextlib import closing
from functools import cache, partial
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Header, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException

from custody.schemas.auth import LOGOUT, REFRESH_COOKIE, LoginResponse, RefreshResponse
from custody.schemas.call import Auth, Call, SignedBody, Way
from custody.schemas.calls import CALLS
from custody.schemas.common import MAX_INT64, QueryId, build_shapes
from custody.schemas.errors import PROBLEM_CONTENT_TYPE, ErrorCode, Problem
from custody.server import nouns  # noqa: F401 - its functions serve the calls
from custody.server.calls import Invocation, answer, known_as, record_refusal
from custody.server.errors import (
    CustodyError,
    DatabaseUnavailable,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    Invalid,
    NotFound,
    PermissionDenied,
    RateLimited,
    SecondPersonNeeded,
    TokenExpired,
    Unauthenticated,
)
from custody.server.rules.credentials import REFRESH_LIFETIME, Caller, anybody, is_secret
from custody.server.sign_in.access_tokens import CONSOLE_ALONE, caller_of
from custody.server.store.store import PageSnapshot
from custody.server.web import http
from custody.server.web.long_poll import DOCUMENTED, answer_in_time
from custody.server.web.problems import trace_id_of

# A longer token cannot be ours: refuse it before hashing.
MAX_TOKEN_CHARACTERS = 200
# The server takes as much of any body before anybody reads it (uvicorn's HIGH_WATER_LIMIT); `web.listen`
# bounds how long each may take, and how many there are.
SMALL_BODY_BYTES = 64 * 1024
REFRESH_PATH = "/auth"
IdempotencyKey = Annotated[
    str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")
]
_bearer = HTTPBearer(auto_error=False, description="The access token of a sign-in")
Token = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_PROBLEM = {"$ref": "#/components/schemas/Problem"}


class Open(APIRoute):
    """For anybody."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def read(request: Request) -> Response:
            return await answer(http.JsonRequest(request.scope, request.receive))

        return read


class Guarded(Open):
    """For an endpoint of `_answering`, which lets its caller in with the call's first reading. A large body
    is not read before that; and only a caller is told what is wrong with a request.

    See "Custom Request and APIRoute class" in FastAPI's documentation.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer, let_in = super().get_route_handler(), vars(self.endpoint)["let_in"]

        def let_in_first(request: Request) -> None:
            with closing(PageSnapshot(http.services_of(request).store)) as snapshot:
                let_in(request, snapshot)

        async def guarded(request: Request) -> Response:
            token = await _bearer(request)
            if token is None or len(token.credentials) > MAX_TOKEN_CHARACTERS:
                raise Unauthenticated("The request carries no access token.")
            request.state.token, request.state.caller = token.credentials, None
            headers = request.headers
            is_large = "transfer-encoding" in headers or http.announces_more(headers, SMALL_BODY_BYTES)
            if is_large or inspect.iscoroutinefunction(self.endpoint):
                await run_in_threadpool(let_in_first, request)
            try:
                return await answer(request)
            except (RequestValidationError, HTTPException):
                await run_in_threadpool(let_in_first, request)
                raise

        return guarded


def _let_in(call: Call[Any, Any], request: Request, snapshot: PageSnapshot | None) -> Caller:
    """Whose request it is; it is counted. Raises Unauthenticated, TokenExpired, PermissionDenied,
    RateLimited.
    """
    caller: Caller | None = request.state.caller
    if caller is None:
        assert snapshot is not None, "who waits is let in first"
        caller = request.state.caller = _caller_of(request, snapshot)
        http.services_of(request).rates.take_call(caller.counted_as, call)
    return caller


def _caller_of(request: Request, snapshot: PageSnapshot) -> Caller:
    """A person by a session's token, or a program by its secret. Raises PermissionDenied for a session of an
    identity provider: unlike the console's forms, API calls do not ask for the second factor again.
    """
    services, address, trace_id = http.services_of(request), http.address_of(request), trace_id_of(request)
    token: str = request.state.token
    if is_secret(token):
        return services.service_signin.authenticate(token, address, trace_id)
    with snapshot.reading() as db:
        caller = caller_of(db, token, services.tools.clock(), address, trace_id)
    if caller.bound_to is not None:
        snapshot.end()
        refusal = PermissionDenied(CONSOLE_ALONE)
        attempt = request.method, request.url.path
        record_refusal(services, caller, attempt, None, refusal, is_change=False)
        raise refusal
    return caller


@cache
def build_router() -> APIRouter:
    """Once per process: building every route's models takes longer than opening a database."""
    build_shapes()
    router = APIRouter(route_class=Guarded)
    for call in CALLS:
        router.add_api_route(
            call.path,
            _answering(call),
            methods=[call.method],
            response_model=call.answer_type,
            name=call.path.rsplit("/", 1)[-1],
            # Made from method and path only, so that it is stable: clients are generated from it.
            operation_id="_".join([call.method.lower(), *re.findall(r"\w+", call.path)]),
            # What the call does, and who may make it.
            description=f"{call.text}\n\n{_who(call)}",
            responses={**refusals_of(call), "default": {"model": Problem, "description": "A refusal"}},
            openapi_extra={
                **(DOCUMENTED if call.long_poll else {}),
                "x-permissions": sorted(call.permissions),
                **({"x-service-accounts": True} if Way.PROGRAM in call.open_to else {}),
            },
            tags=[call.path.split("/")[1]],
            route_class_override=Open if call.needs is Auth.OPEN else None,
        )
    return router


def _answering(call: Call[Any, Any]) -> Callable[..., Any]:
    """The function that FastAPI calls, from what it read of a request to the response; async where it waits
    or reads the body itself. Its signature, made from the declaration, tells FastAPI what to parse, validate
    and document.
    """

    def respond(request: Request, body: Any = None, **given: Any) -> Response:
        services = http.services_of(request)
        with closing(PageSnapshot(services.store)) as snapshot:
            invocation = _invocation(call, request, body, given, snapshot)
            answered = answer(services, invocation, snapshot)
        value, headers = answered.value, http.page_headers(invocation, answered)
        response = Response(answered.content, media_type="application/json", headers=headers)
        if isinstance(value, LoginResponse | RefreshResponse) and value.refresh_token:
            renewal = value.refresh_token, REFRESH_LIFETIME
            http.set_cookie(request, response, REFRESH_COOKIE, *renewal, path=REFRESH_PATH)
        if call is LOGOUT:
            http.set_cookie(request, response, REFRESH_COOKIE, path=REFRESH_PATH)
        return response

    async def respond_in_time(request: Request, body: Any = None, **given: Any) -> Response:
        return await answer_in_time(
            http.services_of(request), _invocation(call, request, body, given), request
        )

    async def respond_to_bytes(request: Request, **given: Any) -> Response:
        body = SignedBody(await request.body(), request.headers)
        return await run_in_threadpool(respond, request, body, **given)

    answers: Any = respond_in_time if call.long_poll else respond
    if call.takes is SignedBody:
        answers = respond_to_bytes
    answers.__signature__ = inspect.Signature(_parameters(call))
    answers.let_in = partial(_let_in, call)
    return answers  # type: ignore[no-any-return]  # Any, so that it takes a signature


def _invocation(
    call: Call[Any, Any],
    request: Request,
    body: Any,
    given: Mapping[str, Any],
    snapshot: PageSnapshot | None = None,
) -> Invocation:
    if call.needs is Auth.OPEN:
        caller = anybody(http.address_of(request), trace_id_of(request))
    else:
        # A signer's own program cannot show a provider's page.
        caller = known_as(_let_in(call, request, snapshot), call, Way.UNLINKED, Way.SIGNER)
    if call.creates and len(request.headers.getlist("idempotency-key")) > 1:
        raise Invalid.at("/header/Idempotency-Key", "A request has one Idempotency-Key.")
    for name, times in Counter(name for name, _ in request.query_params.multi_items()).items():
        if times > 1 and not isinstance(getattr(body, name, None), list):
            raise Invalid.at(f"/{name}", f"The query gives {name} twice.")
    return Invocation(
        call,
        body,
        caller,
        {name: given[name] for name in call.path_ids},
        given.get("idempotency_key"),
        cookie=request.cookies.get(REFRESH_COOKIE, ""),
    )


def _parameters(call: Call[Any, Any]) -> list[inspect.Parameter]:
    annotations: dict[str, Any] = {"request": Request}
    if call.needs is not Auth.OPEN:
        # For the document alone: the route has read it.
        annotations["token"] = Token
    annotations |= dict.fromkeys(call.path_ids, Annotated[QueryId, Path()])
    if call.shape is not None:
        annotations["body"] = Annotated[call.shape, Body() if call.method == "POST" else Query()]
    if call.creates:
        annotations["idempotency_key"] = IdempotencyKey
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=annotation,
            default=None if name == "idempotency_key" else inspect.Parameter.empty,
        )
        for name, annotation in annotations.items()
    ]


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """FastAPI documents every response as plain JSON; refusals have a media type of their own (RFC 9457)."""
    _make_bounds_whole(document)
    for path in document["paths"].values():
        for operation in path.values():
            content = operation["responses"]["default"]["content"]
            if "application/json" in content:
                content[PROBLEM_CONTENT_TYPE] = content.pop("application/json")
    return document


def _make_bounds_whole(node: object) -> None:
    """FastAPI keeps every bound as a float, which cannot hold the largest int64."""
    if isinstance(node, list):
        for each in node:
            _make_bounds_whole(each)
    if isinstance(node, dict):
        for name, value in node.items():
            if name in _BOUNDS and isinstance(value, float) and value.is_integer():
                node[name] = min(int(value), MAX_INT64)
            else:
                _make_bounds_whole(value)


def _who(call: Call[Any, Any]) -> str:
    if call.permissions:
        return f"Permission: {' or '.join(sorted(call.permissions))}."
    if call.needs is Auth.OPEN:
        return "No sign-in is needed."
    return "Any user who is signed in." if call.needs is Auth.SIGNED_IN else "Any member of the workspace."


def refusals_of(call: Call[Any, Any]) -> dict[int | str, dict[str, Any]]:
    """FastAPI's ``responses``: one per status, whose problem carries one of the codes of that status."""
    by_status: dict[int, list[str]] = defaultdict(list)
    for code in sorted(_codes(call)):
        by_status[code.status.value].append(code.value)
    return {status: _refusal(codes) for status, codes in sorted(by_status.items())}


def _codes(call: Call[Any, Any]) -> set[ErrorCode]:
    errors: list[type[CustodyError] | ErrorCode] = [DatabaseUnavailable, *call.refuses]
    codes = {ErrorCode.INTERNAL}
    if call.needs is not Auth.OPEN:
        errors += [Unauthenticated, TokenExpired, RateLimited, PermissionDenied]
    if not isinstance(call.needs, Auth):
        errors.append(NotFound)
    if call.second_person:
        errors.append(SecondPersonNeeded)
    if call.path_ids:
        errors += [NotFound, Invalid]
    if call.creates:
        errors += [IdempotencyInProgress, IdempotencyKeyReused, Invalid]
    if call.shape is not None:
        errors.append(Invalid)
        if call.method == "POST":
            codes |= {ErrorCode.MALFORMED_JSON, ErrorCode.BODY_TOO_LARGE}
    return codes | {error if isinstance(error, ErrorCode) else error.code for error in errors}


def _refusal(codes: list[str]) -> dict[str, Any]:
    schema = {"allOf": [_PROBLEM, {"properties": {"code": {"enum": codes}}}]}
    return {"description": ", ".join(codes), "content": {PROBLEM_CONTENT_TYPE: {"schema": schema}}}
