"""The table of every endpoint, FastAPI's routes built from it, and the OpenAPI document's text on each.

A route authenticates its caller before it reads a body, unless the endpoint is open.
"""

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from itertools import chain
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Header, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from custody.schemas import (
    address_book,
    asset_tokens,
    changes,
    history,
    identity_providers,
    invitations,
    keys,
    limits,
    logs,
    mail_settings,
    members,
    onboarding,
    purchases,
    roles,
    service_accounts,
    users,
    webhooks,
    workspaces,
)
from custody.schemas import vaults as vault_calls
from custody.schemas.call import SignedBody
from custody.schemas.common import MAX_INT64, build_shapes
from custody.schemas.errors import PROBLEM_CONTENT_TYPE, ErrorCode, Problem
from custody.schemas.permissions import Auth
from custody.schemas.queries import QueryId
from custody.server.calls import record_refusal
from custody.server.domain.credentials import Caller, is_secret
from custody.server.domain.errors import (
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
from custody.server.service.sign_in.sessions import CONSOLE_ALONE
from custody.server.web import (
    auth,
    proposals,
    vaults,
)
from custody.server.web.callers import documented
from custody.server.web.declared import rows_of
from custody.server.web.endpoint import Endpoint, address_of, services_of
from custody.server.web.problems import STATUS, trace_id_of
from custody.server.web.runner import Runner

# In the order of the OpenAPI document, which is frozen (tests/frozen).
ENDPOINTS: tuple[Endpoint, ...] = (
    *auth.ENDPOINTS,
    *chain.from_iterable(map(rows_of, (users, members, workspaces, roles, mail_settings))),
    *chain.from_iterable(map(rows_of, (keys, vault_calls))),
    *rows_of(limits),
    *rows_of(address_book),
    *rows_of(invitations),
    *rows_of(onboarding),
    *proposals.ENDPOINTS,
    *vaults.MAX_SEND,
    *rows_of(asset_tokens),
    *rows_of(logs),
    *rows_of(purchases),
    *rows_of(webhooks),
    *rows_of(changes),
    *rows_of(service_accounts),
    *rows_of(history),
    *rows_of(identity_providers),
)

# A longer token cannot be ours: refuse it before hashing.
MAX_TOKEN_CHARACTERS = 200
IdempotencyKey = Annotated[
    str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")
]
_bearer = HTTPBearer(auto_error=False, description="The access token of a sign-in")
Token = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_PROBLEM = {"$ref": "#/components/schemas/Problem"}


class Guarded(APIRoute):
    """Authenticates the caller before FastAPI reads the body, which it does before any dependency.

    See "Custom Request and APIRoute class" in FastAPI's documentation.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            token = await _bearer(request)
            if token is None or len(token.credentials) > MAX_TOKEN_CHARACTERS:
                raise Unauthenticated("The request carries no access token.")
            request.state.caller = await run_in_threadpool(_caller_of, request, token.credentials)
            return await answer(request)

        return guarded


def _caller_of(request: Request, token: str) -> Caller:
    """A person by a session's token, or a program by its secret. Raises PermissionDenied for a session of an
    identity provider: unlike the console's forms, API calls do not ask for the second factor again.
    """
    services, trace_id = services_of(request), trace_id_of(request)
    if is_secret(token):
        return services.service_signin.authenticate(token, address_of(request), trace_id)
    caller = services.sessions.authenticate(token, trace_id)
    if caller.bound_to is not None:
        refusal = PermissionDenied(CONSOLE_ALONE)
        attempt = f"{request.method} {request.url.path}"
        record_refusal(services, caller, attempt, None, refusal, is_change=False)
        raise refusal
    return caller


def build_router(endpoints: Sequence[Endpoint]) -> APIRouter:
    build_shapes()
    router = APIRouter(route_class=Guarded)
    for endpoint in endpoints:
        router.add_api_route(
            endpoint.path,
            _answering(endpoint),
            methods=[endpoint.method],
            response_model=endpoint.answers,
            name=endpoint.path.rsplit("/", 1)[-1],
            operation_id=operation_id_of(endpoint),
            description=description_of(endpoint),
            responses={**refusals_of(endpoint), "default": {"model": Problem, "description": "A refusal"}},
            openapi_extra={
                **endpoint.extra,
                "x-permissions": sorted(endpoint.permissions),
                **documented(endpoint),
            },
            tags=[endpoint.path.split("/")[1]],
            route_class_override=APIRoute if endpoint.needs is Auth.OPEN else None,
        )
    return router


def _answering(endpoint: Endpoint) -> Callable[..., Any]:
    """The function that FastAPI calls. Its signature, made from the endpoint, tells FastAPI what to parse,
    validate and document.
    """
    runner = Runner(endpoint)

    def waited(request: Request, **given: Any) -> Response:
        return runner.run(runner.call(request, given), given.get("idempotency_key"))

    async def awaited(request: Request, **given: Any) -> Response:
        return await runner.run_awaited(runner.call(request, given))

    async def signed(request: Request, **given: Any) -> Response:
        body = SignedBody(await request.body(), request.headers)
        return await run_in_threadpool(waited, request, body=body, **given)

    takes_bytes = endpoint.declared is not None and endpoint.declared.takes is SignedBody
    answer: Any = signed if takes_bytes else awaited if runner.awaits else waited
    answer.__signature__ = inspect.Signature(_parameters(endpoint))
    return answer  # type: ignore[no-any-return]  # Any, so that it takes a signature


def _parameters(endpoint: Endpoint) -> list[inspect.Parameter]:
    annotations: dict[str, Any] = {"request": Request}
    if endpoint.needs is not Auth.OPEN:
        annotations["caller"] = Annotated[Caller, Depends(_changing if endpoint.is_write else _reading)]
    annotations |= dict.fromkeys(endpoint.path_ids, Annotated[QueryId, Path()])
    if endpoint.takes is not None:
        annotations["body"] = Annotated[endpoint.takes, Body() if endpoint.method == "POST" else Query()]
    if endpoint.creates:
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


async def _reading(request: Request, _token: Token) -> Caller:
    """Counts the call and returns the caller, before FastAPI reports invalid input. Raises RateLimited."""
    return _counted(request, is_write=False)


async def _changing(request: Request, _token: Token) -> Caller:
    """`_reading` for a call that changes something."""
    return _counted(request, is_write=True)


def _counted(request: Request, *, is_write: bool) -> Caller:
    caller: Caller = request.state.caller
    services_of(request).rates.take(caller.counted_as, is_write=is_write)
    return caller


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


def operation_id_of(endpoint: Endpoint) -> str:
    """Made from method and path only, so that it is stable: clients are generated from it."""
    return "_".join([endpoint.method.lower(), *re.findall(r"\w+", endpoint.path)])


def description_of(endpoint: Endpoint) -> str:
    """The handler's docstring, and who may call it."""
    text = inspect.getdoc(endpoint.handler) or ""
    return f"{text}\n\n{_who(endpoint)}".strip()


def _who(endpoint: Endpoint) -> str:
    if endpoint.permissions:
        return f"Permission: {' or '.join(sorted(endpoint.permissions))}."
    if endpoint.needs is Auth.OPEN:
        return "No sign-in is needed."
    return (
        "Any user who is signed in." if endpoint.needs is Auth.SIGNED_IN else "Any member of the workspace."
    )


def refusals_of(endpoint: Endpoint) -> dict[int | str, dict[str, Any]]:
    """FastAPI's ``responses``: one per status, whose problem carries one of the codes of that status."""
    by_status: dict[int, list[str]] = defaultdict(list)
    for code in sorted(_codes(endpoint)):
        by_status[STATUS[code].value].append(code.value)
    return {status: _refusal(codes) for status, codes in sorted(by_status.items())}


def _codes(endpoint: Endpoint) -> set[ErrorCode]:
    errors: list[type[CustodyError] | ErrorCode] = [DatabaseUnavailable, *endpoint.refuses]
    codes = {ErrorCode.INTERNAL}
    if endpoint.needs is not Auth.OPEN:
        errors += [Unauthenticated, TokenExpired, RateLimited, PermissionDenied]
    if not isinstance(endpoint.needs, Auth):
        errors.append(NotFound)
    if endpoint.needs_second_person:
        errors.append(SecondPersonNeeded)
    if endpoint.path_ids:
        errors += [NotFound, Invalid]
    if endpoint.creates:
        errors += [IdempotencyInProgress, IdempotencyKeyReused, Invalid]
    if endpoint.takes is not None:
        errors.append(Invalid)
        if endpoint.method == "POST":
            codes |= {ErrorCode.MALFORMED_JSON, ErrorCode.BODY_TOO_LARGE}
    return codes | {error if isinstance(error, ErrorCode) else error.code for error in errors}


def _refusal(codes: list[str]) -> dict[str, Any]:
    schema = {"allOf": [_PROBLEM, {"properties": {"code": {"enum": codes}}}]}
    return {"description": ", ".join(codes), "content": {PROBLEM_CONTENT_TYPE: {"schema": schema}}}
