"""Paired apps: who asks to be let in, what each may do, and ending it."""

from typing import Any

from starlette.responses import Response

from signerd import shapes
from signerd.callers import RIGHT_WORDS, granted
from signerd.loopback.page.rendering import Live
from signerd.loopback.page.request import PageRequest, Row, shaped
from signerd.shapes.account import DAYS, MAX_DAYS

REQUESTS = Live("pairings", "apps/requests.html", "/apps/requests")
PAIRED = Live("paired", "apps/paired.html", "/apps/paired")
ORIGINS = Live("origins", "apps/origins.html", "/apps/origins")


async def _known(asked: PageRequest) -> dict[str, Any]:
    ours = asked.service.apps
    return {
        "requests": await ours.open_requests(),
        "apps": tuple(reversed(await ours.list())),
        "origins": await ours.list_origins(),
        "granted": granted,
        "right_words": RIGHT_WORDS,
        "days": DAYS,
        "max_days": MAX_DAYS,
        "requests_part": REQUESTS,
        "paired_part": PAIRED,
        "origins_part": ORIGINS,
    }


async def apps(asked: PageRequest) -> Response:
    return await asked.page("apps/apps.html", title="Apps", here="/apps", **await _known(asked))


async def requests(asked: PageRequest) -> Response:
    return asked.part(REQUESTS, **await _known(asked))


async def paired(asked: PageRequest) -> Response:
    return asked.part(PAIRED, **await _known(asked))


async def origins(asked: PageRequest) -> Response:
    return asked.part(ORIGINS, **await _known(asked))


async def accept(asked: PageRequest) -> Response:
    """The code is typed from the app's own window: whoever asked is the one that the person meant."""
    pairing_id, fields = asked.path_id("pairing_id"), await asked.fields()
    said = shaped(
        shapes.AcceptRequest,
        code=fields.one("code"),
        rights=fields.every("rights"),
        days=fields.one("days") or DAYS,
    )
    await asked.service.apps.accept(pairing_id, said.code, rights=said.rights, days=said.days)
    return asked.part(REQUESTS, PAIRED, **await _known(asked))


async def refuse(asked: PageRequest) -> Response:
    await asked.service.apps.refuse(asked.path_id("pairing_id"))
    return asked.part(REQUESTS, **await _known(asked))


async def revoke(asked: PageRequest) -> Response:
    await asked.service.apps.revoke(asked.path_id("app_id"))
    return asked.part(PAIRED, ORIGINS, **await _known(asked))


async def let_in(asked: PageRequest) -> Response:
    fields = await asked.fields()
    said = shaped(shapes.LetInRequest, origin=fields.one("origin"))
    await asked.service.apps.let_in(said.origin, said.minutes)
    return asked.part(ORIGINS, **await _known(asked))


async def shut_out(asked: PageRequest) -> Response:
    fields = await asked.fields()
    said = shaped(shapes.LetInRequest, origin=fields.one("origin"))
    await asked.service.apps.shut_out(said.origin)
    return asked.part(ORIGINS, PAIRED, **await _known(asked))


ROWS = (
    Row("GET", "/apps", apps),
    Row("GET", "/apps/requests", requests),
    Row("GET", "/apps/paired", paired),
    Row("GET", "/apps/origins", origins),
    Row("POST", "/apps/requests/{pairing_id}/accept", accept),
    Row("POST", "/apps/requests/{pairing_id}/refuse", refuse),
    Row("POST", "/apps/{app_id}/revoke", revoke),
    Row("POST", "/apps/origins/let-in", let_in),
    Row("POST", "/apps/origins/shut-out", shut_out),
)
