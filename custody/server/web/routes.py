"""Builds FastAPI's routes from the table. A route asks for a caller, before it reads a body, unless its row is open to everybody."""

import inspect
from collections.abc import Callable, Coroutine, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Header, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from custody.schemas.errors import Problem
from custody.schemas.queries import QueryId
from custody.server.domain.caller import Caller
from custody.server.domain.errors import Unauthenticated
from custody.server.web.document import description_of, operation_id_of, refusals_of
from custody.server.web.endpoint import Door, Endpoint, services_of
from custody.server.web.problems import trace_id_of
from custody.server.web.runner import REFUSALS, Runner

# A longer token is none of ours; do not even hash it.
MAX_TOKEN_CHARACTERS = 200
IdempotencyKey = Annotated[
    str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")
]
_bearer = HTTPBearer(auto_error=False, description="The access token of a sign-in")
Token = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


class Guarded(APIRoute):
    """Finds out who calls before FastAPI reads the body, which it does before it asks any dependency.

    See "Custom Request and APIRoute class" in FastAPI's documentation.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            token = await _bearer(request)
            if token is None or len(token.credentials) > MAX_TOKEN_CHARACTERS:
                raise Unauthenticated("The request carries no access token.")
            sessions, trace_id = services_of(request).sessions, trace_id_of(request)
            request.state.caller = await run_in_threadpool(sessions.authenticate, token.credentials, trace_id)
            return await answer(request)

        return guarded


def build_router(endpoints: Sequence[Endpoint]) -> APIRouter:
    """Of no platform in particular: the application's state holds the services."""
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
            openapi_extra={**endpoint.extra, "x-permissions": sorted(endpoint.permissions)},
            tags=[endpoint.path.split("/")[1]],
            route_class_override=APIRoute if endpoint.needs is Door.OPEN else None,
        )
    return router


def _answering(endpoint: Endpoint) -> Callable[..., Any]:
    """What FastAPI calls. Its signature, made from the row, says what FastAPI reads, checks and documents."""
    runner = Runner(endpoint)

    def waited(request: Request, **given: Any) -> Response:
        return runner.run(runner.call(request, given), given.get("idempotency_key"))

    async def awaited(request: Request, **given: Any) -> Response:
        call = runner.call(request, given)
        try:
            return runner.answer(await endpoint.handler(call))
        except REFUSALS as error:
            await run_in_threadpool(runner.record_refusal, call, error)
            raise

    answer: Any = awaited if inspect.iscoroutinefunction(endpoint.handler) else waited
    answer.__signature__ = inspect.Signature(_parameters(endpoint))
    return answer  # type: ignore[no-any-return]  # Any, so that it takes a signature


def _parameters(endpoint: Endpoint) -> list[inspect.Parameter]:
    annotations: dict[str, Any] = {"request": Request}
    if endpoint.needs is not Door.OPEN:
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
    """Who calls, with the call counted. FastAPI asks before it says what is wrong with what was sent. Raises RateLimited."""
    return _counted(request, is_write=False)


async def _changing(request: Request, _token: Token) -> Caller:
    """The same of a call that changes something."""
    return _counted(request, is_write=True)


def _counted(request: Request, *, is_write: bool) -> Caller:
    caller: Caller = request.state.caller
    services_of(request).rates.take(caller.user_id, is_write=is_write)
    return caller
