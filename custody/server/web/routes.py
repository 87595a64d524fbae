"""Builds the routes from the table: every endpoint is let in, run and answered in the same way."""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Body, Depends, Header, Path, Query
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, TypeAdapter
from sqlalchemy.orm import Session
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import request_response

from custody.schemas.errors import Problem
from custody.schemas.queries import QueryId
from custody.server.domain.audit import Category
from custody.server.domain.caller import Caller, WorkspaceAccess
from custody.server.domain.errors import (
    CustodyError,
    KeyIsRevoked,
    NotASigner,
    NotFound,
    NotOrgMember,
    PermissionDenied,
    RoleLimitExceeded,
    VaultLimitExceeded,
)
from custody.server.service.requests.idempotency import Scope
from custody.server.service.requests.outdated import MAX_TRIES, Outdated
from custody.server.service.services import Services
from custody.server.service.sign_in.password_check import require_session
from custody.server.web.document import refusals_of
from custody.server.web.endpoint import Call, Door, Endpoint, Unit
from custody.server.web.problems import trace_id_of
from custody.server.web.reading import NOTHING, Parameters, body_of, token_of

# Attempts to do what one may not: recorded, unlike mistakes.
REFUSALS = (PermissionDenied, NotOrgMember, NotASigner, KeyIsRevoked, RoleLimitExceeded, VaultLimitExceeded)
IdempotencyKey = Annotated[
    str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")
]
Handler = Callable[[Call[Any]], Any]
_bearer = HTTPBearer(auto_error=False, description="The access token of a sign-in")


def build_routes(endpoints: Sequence[Endpoint]) -> list[APIRoute]:
    """Of no platform in particular: a request brings its own (`serve_with`)."""
    return [_route(endpoint) for endpoint in endpoints]


def _route(endpoint: Endpoint) -> APIRoute:
    """A route that FastAPI documents, and finds, and that we answer."""
    route = APIRoute(
        endpoint.path,
        _described(endpoint),
        methods=[endpoint.method],
        response_model=endpoint.answers,
        name=endpoint.path.rsplit("/", 1)[-1],
        operation_id=_operation_id(endpoint),
        description=_description(endpoint),
        responses={**refusals_of(endpoint), "default": {"model": Problem, "description": "A refusal"}},
        openapi_extra={**endpoint.extra, "x-permissions": sorted(endpoint.permissions)},
        tags=[endpoint.path.split("/")[1]],
    )
    route.app = request_response(_answering(endpoint, Parameters(route)))
    return route


def _operation_id(endpoint: Endpoint) -> str:
    return "_".join([endpoint.method.lower(), *re.findall(r"\w+", endpoint.path)])


def _description(endpoint: Endpoint) -> str:
    text = inspect.getdoc(endpoint.handler) or ""
    return f"{text}\n\n{_who(endpoint)}".strip()


def _who(endpoint: Endpoint) -> str:
    if endpoint.permissions:
        return f"Permission: {' or '.join(sorted(endpoint.permissions))}."
    if endpoint.needs is Door.OPEN:
        return "Nobody need be signed in."
    return "Whoever is signed in." if endpoint.needs is Door.SIGNED_IN else "Any member of the workspace."


def serve_with(app: Starlette, services: Services) -> None:
    """Gives an application the use cases that its requests run."""
    app.state.services = services


def _services_of(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


def _answering(endpoint: Endpoint, parameters: Parameters) -> Callable[[Request], Awaitable[Response]]:
    """One thread for all that a call waits for. Who calls is asked first: a stranger learns nothing of what should be sent."""
    runner = Runner(endpoint)

    def admit(request: Request, body: Any) -> tuple[Call[Any], str | None]:
        caller = None if endpoint.needs is Door.OPEN else _authenticate(endpoint, request)
        given = parameters.read(request, body)
        return runner.call(request, caller, given), given.get("idempotency_key")

    def wait(request: Request, body: Any) -> Response:
        return runner.run(*admit(request, body))

    async def waited(request: Request) -> Response:
        return await run_in_threadpool(wait, request, await sent(request))

    async def awaited(request: Request) -> Response:
        call, _ = await run_in_threadpool(admit, request, await sent(request))
        try:
            return runner.answer(await endpoint.handler(call))
        except REFUSALS as error:
            await run_in_threadpool(runner.record_refusal, call, error)
            raise

    async def sent(request: Request) -> Any:
        return await body_of(request) if parameters.has_body else NOTHING

    return awaited if inspect.iscoroutinefunction(endpoint.handler) else waited


def _authenticate(endpoint: Endpoint, request: Request) -> Caller:
    services = _services_of(request)
    caller = services.sessions.authenticate(token_of(request), trace_id_of(request))
    services.rates.take(caller.user_id, is_write=endpoint.is_write)
    return caller


def _described(endpoint: Endpoint) -> Callable[..., Any]:
    """Its signature tells FastAPI what to read and to document."""

    def described(**_given: Any) -> None:
        raise AssertionError("the route is answered without it")

    shape: Any = described
    shape.__signature__ = inspect.Signature(_parameters(endpoint))
    return described


def _parameters(endpoint: Endpoint) -> list[inspect.Parameter]:
    annotations: dict[str, Any] = {}
    if endpoint.needs is not Door.OPEN:
        annotations["credentials"] = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
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


class Runner:
    """Runs one endpoint: the transaction, the check of the permission in it, the stored answer of a repeated request."""

    def __init__(self, endpoint: Endpoint) -> None:
        assert not endpoint.creates or endpoint.unit is Unit.WRITE, (
            "a stored answer needs its effect's transaction"
        )
        self._endpoint = endpoint
        self._adapter: TypeAdapter[Any] = TypeAdapter(endpoint.answers)

    def call(self, request: Request, caller: Caller | None, given: Mapping[str, Any]) -> Call[Any]:
        return Call(
            endpoint=self._endpoint,
            services=_services_of(request),
            request=request,
            body=given.get("body"),
            trace_id=trace_id_of(request),
            maybe_caller=caller,
            ids={name: given[name] for name in self._endpoint.path_ids},
        )

    def run(self, call: Call[Any], idempotency_key: str | None) -> Response:
        try:
            if idempotency_key is None:
                return self._transact(call)
            scope = Scope(call.caller.user_id, self._endpoint.method, call.path, idempotency_key)
            with call.services.idempotency.guard(scope):
                return self._transact(call, scope)
        except REFUSALS as error:
            self.record_refusal(call, error)
            raise

    def answer(self, result: Any) -> Response:
        """A handler answers with its shape, or with a whole response where headers or a status are its business."""
        return result if isinstance(result, Response) else _json(self._encode(result))

    def _encode(self, result: Any) -> bytes:
        return self._adapter.dump_json(result, by_alias=True)

    def _transact(self, call: Call[Any], scope: Scope | None = None) -> Response:
        store = call.services.store
        match self._endpoint.unit:
            case Unit.OWN:
                return self.answer(self._endpoint.handler(call))
            case Unit.READ:
                with store.read() as db:
                    return self.answer(self._endpoint.handler(self._let_in(call, db)))
            case Unit.WRITE if self._endpoint.prepares is not None:
                return self._prepare_and_write(call, scope, self._endpoint.prepares)
            case Unit.WRITE:
                return self._write(call, scope, self._endpoint.handler)

    def _prepare_and_write(self, call: Call[Any], scope: Scope | None, prepares: Handler) -> Response:
        """What was prepared in vain several times is prepared once more where nobody else can write: it ends in any case."""
        for tries in range(MAX_TRIES):
            with call.services.store.read() as db:
                ready = self._let_in(replace(call, tries=tries), db)
                if scope is not None:
                    known = call.services.idempotency.known(db, scope, _canonical(call.body))
                    if known is not None:
                        return _json(known)
                prepared = prepares(ready)
            try:
                return self._write(replace(call, prepared=prepared), scope, self._endpoint.handler)
            except Outdated:
                continue
        return self._write(
            replace(call, tries=MAX_TRIES),
            scope,
            lambda ready: self._endpoint.handler(replace(ready, prepared=prepares(ready))),
        )

    def _write(self, call: Call[Any], scope: Scope | None, handler: Handler) -> Response:
        with call.services.store.write() as db:
            # Let in first: a stored answer is no way around a permission that was taken away (P23).
            ready = self._let_in(call, db)
            if scope is None:
                return self.answer(handler(ready))
            return _json(
                call.services.idempotency.once(
                    db, scope, _canonical(call.body), lambda: self._encode(handler(ready))
                )
            )

    def _let_in(self, call: Call[Any], db: Session) -> Call[Any]:
        if self._endpoint.unit is Unit.WRITE and call.maybe_caller is not None:
            # A change may have waited seconds for its turn: a session that was ended meanwhile changes nothing.
            require_session(db, call.caller)
        return replace(call, maybe_db=db, maybe_access=self._enter(call, db))

    def _enter(self, call: Call[Any], db: Session) -> WorkspaceAccess | None:
        if isinstance(self._endpoint.needs, Door):
            return None
        return call.enter(db, getattr(call.body, self._endpoint.workspace_field))

    def record_refusal(self, call: Call[Any], error: CustodyError) -> None:
        """In a transaction of its own, for the refused one was rolled back. Raises RateLimited: whoever is refused again and
        again takes no more turns of the writers, and no more of the log, than whoever changes things.
        """
        if not self._endpoint.is_write:
            call.services.rates.take_write(call.caller.user_id)
        with call.services.store.write() as db:
            call.services.audit.record(
                db,
                call.caller,
                Category.ACCESS,
                error.code,
                f"{self._endpoint.method} {call.path}",
                access=self._place(call, db),
            )

    def _place(self, call: Call[Any], db: Session) -> WorkspaceAccess | None:
        """A member's attempt is for the eyes of the workspace it was made in; all others are the platform's."""
        workspace_id = getattr(call.body, self._endpoint.workspace_field, None)
        if workspace_id is None:
            return None
        try:
            return call.services.people.enter(db, call.caller, workspace_id, frozenset())
        except (NotFound, PermissionDenied):
            return None


def _canonical(body: BaseModel | None) -> bytes:
    return b"" if body is None else body.model_dump_json().encode()


def _json(content: bytes) -> Response:
    return Response(content, media_type="application/json")
