"""A declared call over HTTP: from what FastAPI read of a request to the response."""

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool

from custody.schemas.auth import LOGOUT, REFRESH_COOKIE, LoginResponse, RefreshResponse
from custody.schemas.call import Call, SignedBody, Way
from custody.server.calls import Invocation, answer, known_as
from custody.server.rules.credentials import anybody
from custody.server.web.cookies import delete_refresh_token, set_refresh_token
from custody.server.web.http import address_of, page_headers, services_of
from custody.server.web.long_poll import answer_in_time
from custody.server.web.problems import trace_id_of


def function_of(call: Call[Any, Any]) -> Callable[..., Any]:
    """A function of a request and of what `routes` says that FastAPI reads of it, by name. It is async where
    it waits or reads the body itself.
    """

    def respond(request: Request, **given: Any) -> Response:
        invocation = _invocation(call, request, given)
        answered = answer(services_of(request), invocation)
        page, value = answered.page, answered.value
        headers = {} if page is None else page_headers(invocation.path, invocation.request, page, call.key)
        response = Response(answered.content, media_type="application/json", headers=headers)
        if isinstance(value, LoginResponse | RefreshResponse) and value.refresh_token:
            set_refresh_token(request, response, value.refresh_token)
        if call is LOGOUT:
            delete_refresh_token(request, response)
        return response

    async def respond_in_time(request: Request, **given: Any) -> Response:
        return await answer_in_time(services_of(request), _invocation(call, request, given), request)

    async def respond_to_bytes(request: Request, **given: Any) -> Response:
        body = SignedBody(await request.body(), request.headers)
        return await run_in_threadpool(respond, request, body=body, **given)

    if call.takes is SignedBody:
        return respond_to_bytes
    return respond_in_time if call.long_poll else respond


def _invocation(call: Call[Any, Any], request: Request, given: Mapping[str, Any]) -> Invocation:
    caller = given.get("caller")
    return Invocation(
        call,
        given.get("body"),
        anybody(address_of(request), trace_id_of(request))
        if caller is None
        # A signer's own program cannot show a provider's page.
        else known_as(caller, call, Way.UNLINKED, Way.SIGNER),
        {name: given[name] for name in call.path_ids},
        given.get("idempotency_key"),
        cookie=request.cookies.get(REFRESH_COOKIE, ""),
    )
