"""Status, and the account at the platform."""

from http import HTTPStatus

from starlette.responses import Response

from signerd import shapes
from signerd.callers import Right
from signerd.loopback.api.table import Route, Service


async def status(service: Service) -> shapes.Status:
    return await service.status()


async def sign_in(service: Service, body: shapes.SignInRequest) -> shapes.SignedIn:
    return await service.sign_in(body.email, body.password)


async def confirm_sign_in(service: Service, body: shapes.CodeRequest) -> shapes.SignedIn:
    return await service.confirm_sign_in(body.code)


async def sign_out(service: Service) -> Response:
    await service.sign_out()
    return Response(status_code=HTTPStatus.NO_CONTENT)


ROUTES = (
    Route("GET", "/status", status, Right.READ, "What the daemon does and what it needs"),
    Route("POST", "/session", sign_in, Right.PERSON, "Sign in to the platform"),
    Route("POST", "/session/code", confirm_sign_in, Right.PERSON, "Finish a sign-in with the one-time code"),
    Route("DELETE", "/session", sign_out, Right.PERSON, "Sign out"),
)
