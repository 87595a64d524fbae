"""The interface under ``/v1``: one table, a row for each thing that can be asked. Each row only hands on to the port."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from pydantic import Field
from starlette import routing
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from signerd.errors import DaemonFailed, InvalidRequest, NoSuchRoute, SignerdError
from signerd.loopback import events, shapes
from signerd.loopback.binding import Endpoint, In, bind
from signerd.loopback.errors import CONTENT_TYPE, problem, status_of
from signerd.loopback.events import Streams
from signerd.loopback.service import DaemonService

PREFIX = "/v1"
_NOT_IN_THE_TABLE = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})
# A line each nanosecond for three centuries.
MAX_POSITION = 2**63 - 1


Service = Annotated[DaemonService, In.STATE]
PathId = Annotated[shapes.Id, In.PATH]
QueryId = Annotated[shapes.Id | None, In.QUERY]
Position = Annotated[int | None, Field(ge=0, le=MAX_POSITION), In.QUERY]
LastEventId = Annotated[int | None, Field(ge=0, le=MAX_POSITION), In.HEADER]


async def status(service: Service) -> shapes.Status:
    return await service.status()


async def sign_in(service: Service, body: shapes.SignInRequest) -> shapes.SignedIn:
    return await service.sign_in(body.email, body.password)


async def confirm_sign_in(service: Service, body: shapes.CodeRequest) -> shapes.SignedIn:
    return await service.confirm_sign_in(body.code)


async def sign_out(service: Service) -> Response:
    await service.sign_out()
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def devices(service: Service) -> tuple[shapes.DeviceView, ...]:
    return await service.devices()


async def preview_registration(service: Service, device: QueryId = None) -> shapes.RegistrationPreview:
    return await service.preview_registration(device)


async def register(service: Service, body: shapes.RegisterRequest) -> shapes.Registered:
    return await service.register(body.device_id, body.digest, replace=body.replace)


async def vaults(service: Service) -> tuple[shapes.VaultView, ...]:
    return await service.vaults()


async def preview_pin(
    service: Service, vault_id: PathId, body: shapes.PinPreviewRequest
) -> shapes.PinPreview:
    return await service.preview_pin(vault_id, body.brought)


async def pin(service: Service, vault_id: PathId, body: shapes.PinRequest) -> shapes.VaultView:
    return await service.pin(
        vault_id, body.code, brought=body.brought, without_device_address=body.without_device_address
    )


async def unpin(service: Service, vault_id: PathId, body: shapes.UnpinRequest) -> shapes.VaultView:
    return await service.unpin(vault_id, body.code)


async def proposals(
    service: Service, ended: Annotated[bool, In.QUERY] = False
) -> tuple[shapes.ProposalLine, ...]:
    return await service.proposals(ended=ended)


async def proposal(service: Service, psbt_id: PathId) -> shapes.ProposalView:
    return await service.proposal(psbt_id)


async def approve(service: Service, psbt_id: PathId, body: shapes.ApproveRequest) -> shapes.ProposalLine:
    return await service.approve(psbt_id, body.digest, body.acknowledged)


async def reject(service: Service, psbt_id: PathId, body: shapes.RejectRequest) -> shapes.ProposalLine:
    return await service.reject(psbt_id, body.reason)


async def verify_audit(service: Service) -> shapes.AuditReport:
    return await service.verify_audit()


async def follow(
    service: Service,
    streams: Annotated[Streams, In.STATE],
    after: Position = None,
    subject: QueryId = None,
    last_event_id: LastEventId = None,
) -> StreamingResponse:
    """From ``Last-Event-ID`` or ``after``, where given; else from now on."""
    given = last_event_id if last_event_id is not None else after
    position = service.feed.last if given is None else given
    streams.admit()
    lines = streams.follow(service.feed, position, subject)
    return StreamingResponse(lines, media_type=events.MEDIA_TYPE, headers={"Cache-Control": "no-store"})


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    endpoint: Endpoint
    summary: str


ROUTES = (
    Route("GET", "/status", status, "What the daemon does and what it needs"),
    Route("POST", "/session", sign_in, "Sign in to the platform"),
    Route("POST", "/session/code", confirm_sign_in, "Finish a sign-in with the one-time code"),
    Route("DELETE", "/session", sign_out, "Sign out"),
    Route("GET", "/devices", devices, "The devices that are there, and their state"),
    Route("POST", "/registration/preview", preview_registration, "Read the keys that would be registered"),
    Route("POST", "/registration", register, "Register the keys that were shown"),
    Route("GET", "/vaults", vaults, "The vaults that the platform shows, pinned or not"),
    Route("POST", "/vaults/{vault_id}/pin/preview", preview_pin, "What to compare before pinning a vault"),
    Route("POST", "/vaults/{vault_id}/pin", pin, "Pin a vault by its verification code"),
    Route(
        "POST", "/vaults/{vault_id}/unpin", unpin, "Forget a pinned vault, by the code it was pinned under"
    ),
    Route("GET", "/proposals", proposals, "The proposals known here"),
    Route("GET", "/proposals/{psbt_id}", proposal, "Where the money goes, and every check"),
    Route("POST", "/proposals/{psbt_id}/approve", approve, "Approve what was shown"),
    Route("POST", "/proposals/{psbt_id}/reject", reject, "Decline"),
    Route("GET", "/audit", verify_audit, "Whether the chain of decisions is whole"),
    Route("GET", "/events", follow, "What happens, as server-sent events"),
)


async def interface(_request: Request) -> Response:
    # Asked for once in a while, by a person who writes a program: not kept in memory before.
    from signerd.loopback.description import describe

    return JSONResponse(describe(ROUTES, PREFIX))


def make_app(service: DaemonService, streams: Streams) -> Starlette:
    """The application over one daemon; ``access.Door`` stands before it."""
    app = Starlette(
        routes=[
            *(_row(route.method, route.path, bind(route.endpoint)) for route in ROUTES),
            _row("GET", "/openapi.json", interface),
        ],
        exception_handlers={
            SignerdError: _known,
            HTTPException: _not_served,
            Exception: _unknown,
        },
    )
    app.router.redirect_slashes = False
    app.state.service, app.state.streams = service, streams
    return app


def _row(method: str, path: str, endpoint: Endpoint) -> routing.Route:
    row = routing.Route(PREFIX + path, endpoint, methods=[method])
    # Starlette adds HEAD to every GET; the table does not have it.
    row.methods = {method}
    return row


def _answer(error: SignerdError) -> JSONResponse:
    return JSONResponse(problem(error), status_of(error), media_type=CONTENT_TYPE)


async def _known(_request: Request, error: Exception) -> Response:
    assert isinstance(error, SignerdError)
    return _answer(error)


async def _not_served(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code in _NOT_IN_THE_TABLE:
        return _answer(NoSuchRoute(f"{request.method} on this path: {HTTPStatus(error.status_code).phrase}"))
    return _answer(InvalidRequest("the request cannot be read"))


async def _unknown(_request: Request, _error: Exception) -> Response:
    """A bug. Starlette raises it again after this answer, so that the log has it whole."""
    return _answer(DaemonFailed("the daemon met an error that it has no name for"))
