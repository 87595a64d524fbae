"""The SDK with a platform in this process."""

from collections.abc import Callable

import httpx

from custody.client import Client
from custody.common.exchange import Body, HttpReply, HttpRequest, Outcome, Unfit
from custody.common.transports import message, no_answer
from custody.schemas.auth import LoginRequest
from tests.support.platform import PASSWORD, World


def through(transport: httpx.BaseTransport) -> Callable[[HttpRequest], Outcome]:
    """An httpx transport for our blocking client."""
    http = httpx.Client(transport=transport, trust_env=False)

    def perform(request: HttpRequest) -> Outcome:
        http.cookies.clear()
        try:
            response = http.send(message(request), stream=True)
            body = Body(request, response.headers)
            for piece in response.iter_bytes():
                body.add(piece)
            return HttpReply(response.status_code, response.headers, body.whole(), request.path)
        except (httpx.TransportError, Unfit) as error:
            return no_answer(error)

    return perform


def connect(world: World) -> Client:
    """Not signed in."""
    transport = through(world.http._transport)
    return Client("http://127.0.0.1", transport=transport, now=lambda: world.clock().timestamp())


def sdk(world: World, email: str) -> Client:
    """The SDK of a person who signs in with a password alone."""
    client = connect(world)
    assert client.login(LoginRequest(email=email, password=PASSWORD)).token
    world.http.cookies.clear()
    return client
