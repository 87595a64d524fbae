"""Pairing: an app asks and collects, the person answers; the apps that are paired, and the origins that may ask."""

from typing import Annotated

from signerd import shapes
from signerd.callers import Right
from signerd.loopback.api.table import By, PathId, Route, Service
from signerd.loopback.binding import In

# As the browser sends it; a program has none.
Origin = Annotated[str | None, In.HEADER]
QueryOrigin = Annotated[shapes.OriginText, In.QUERY]


async def ask(service: Service, body: shapes.PairingRequest, origin: Origin = None) -> shapes.Pairing:
    return await service.apps.ask(body.name, body.rights, origin)


async def collect(service: Service, pairing_id: PathId, body: shapes.CollectRequest) -> shapes.Collected:
    return await service.apps.collect(pairing_id, body.secret)


async def open_requests(service: Service) -> tuple[shapes.OpenPairing, ...]:
    return await service.apps.open_requests()


async def accept(service: Service, pairing_id: PathId, body: shapes.AcceptRequest) -> shapes.OpenPairing:
    return await service.apps.accept(pairing_id, body.code, rights=body.rights, days=body.days)


async def refuse(service: Service, pairing_id: PathId) -> shapes.OpenPairing:
    return await service.apps.refuse(pairing_id)


async def me(service: Service, caller: By) -> shapes.Me:
    return await service.apps.me(caller)


async def apps(service: Service) -> tuple[shapes.AppView, ...]:
    return await service.apps.list()


async def revoke(service: Service, app_id: PathId) -> shapes.AppView:
    return await service.apps.revoke(app_id)


async def origins(service: Service) -> tuple[shapes.OriginView, ...]:
    return await service.apps.list_origins()


async def let_in(service: Service, body: shapes.LetInRequest) -> shapes.OriginView:
    return await service.apps.let_in(body.origin, body.minutes)


async def shut_out(service: Service, origin: QueryOrigin) -> shapes.OriginView:
    return await service.apps.shut_out(origin)


ROUTES = (
    Route("POST", "/pairings", ask, Right.ANYONE, "Ask to be paired"),
    Route(
        "POST",
        "/pairings/{pairing_id}/collect",
        collect,
        Right.ANYONE,
        "The person's answer; the token, once",
    ),
    Route(
        "GET",
        "/pairings",
        open_requests,
        Right.PERSON,
        "The requests that wait for the person, or for the app to collect",
    ),
    Route("POST", "/pairings/{pairing_id}/accept", accept, Right.PERSON, "Grant what was asked for, or less"),
    Route("POST", "/pairings/{pairing_id}/refuse", refuse, Right.PERSON, "Grant nothing"),
    # Whatever right an app has, it may ask which.
    Route("GET", "/me", me, Right.ANYONE, "Who asks, with which rights, and until when"),
    Route("GET", "/apps", apps, Right.PERSON, "The apps that were paired"),
    Route("DELETE", "/apps/{app_id}", revoke, Right.PERSON, "Make an app's token worth nothing"),
    Route("GET", "/origins", origins, Right.PERSON, "The sites that may send requests from a browser"),
    Route("POST", "/origins", let_in, Right.PERSON, "Let a site's pages ask to be paired, for minutes"),
    Route("DELETE", "/origins", shut_out, Right.PERSON, "Shut a site out, and revoke its apps"),
)
