"""From the values of pairing to the shapes of the loopback."""

from datetime import datetime

from signerd.apps.origins import warning_of
from signerd.apps.requests import PairingRequest, Stage
from signerd.callers import granted
from signerd.journal.apps import App
from signerd.shapes.apps import AppView, Collected, OpenPairing, OriginView


def open_pairing(asked: PairingRequest, seconds_left: int) -> OpenPairing:
    accepted = asked.stage is Stage.ACCEPTED
    return OpenPairing(
        id=asked.pairing_id,
        name=asked.name,
        origin=asked.origin,
        rights=granted(asked.granted if accepted else asked.rights),
        state="accepted" if accepted else "waiting",
        code=asked.code,
        seconds_left=seconds_left,
        tries_left=asked.tries_left,
        warning=warning_of(asked.origin),
    )


def collected(app: App, token: str) -> Collected:
    return Collected(
        state="accepted",
        token=token,
        app_id=app.app_id,
        rights=granted(app.rights),
        expires=stamp(app.expires),
    )


def app_view(app: App, now: datetime) -> AppView:
    return AppView(
        id=app.app_id,
        name=app.name,
        origin=app.origin,
        rights=granted(app.rights),
        state="revoked" if app.revoked is not None else "expired" if now >= app.expires else "live",
        created=stamp(app.created),
        expires=stamp(app.expires),
        revoked=None if app.revoked is None else stamp(app.revoked),
        last_used=None if app.used is None else app.used.isoformat(),
    )


def origin_view(origin: str, until: datetime | None, apps: tuple[str, ...]) -> OriginView:
    told = None if until is None else stamp(until)
    return OriginView(origin=origin, until=told, apps=apps, warning=warning_of(origin))


def stamp(at: datetime) -> str:
    """RFC 3339, to the second: a person reads it."""
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
