"""The use cases of pairing. Each change is recorded first and then announced; a method that raises has
changed nothing.
"""

import asyncio
import contextlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from hmac import compare_digest

from signerd.apps.names import PREFIX, clean_name, exact_origin, token_hash, warning_of
from signerd.apps.requests import LIFE_SECONDS, PairingRequest, PairingStage, Requests, require_free
from signerd.callers import CallerKind, LoopbackCaller, Right, app_words, granted
from signerd.core.audit import Note
from signerd.core.text import moment_of
from signerd.errors import InvalidRequest, NotAllowed, NotPaired, UnknownApp, WrongPairingCode
from signerd.feed import Feed
from signerd.journal import Journal
from signerd.journal.apps import App, facts_of
from signerd.runtime import DaemonDependencies
from signerd.shapes.account import AppView, Collected, Me, OpenPairing, OriginView, Pairing
from signerd.shapes.limits import DAYS, LET_IN_MINUTES


def app_view(app: App, now: datetime) -> AppView:
    return AppView(
        id=app.app_id,
        name=app.name,
        origin=app.origin,
        rights=granted(app.rights),
        state="live" if app.is_live(now) else "expired" if app.revoked is None else "revoked",
        created=moment_of(app.created),
        expires=moment_of(app.expires),
        revoked=None if app.revoked is None else moment_of(app.revoked),
        last_used=None if app.used is None else app.used.isoformat(),
    )


# The feed's subject for pairing.
PAIRING = "pairing"
# The wall clock may be set, and a machine may sleep: expiry is checked again after this long.
LOOK_AGAIN_SECONDS = 60.0


class PairedApps:
    """Not thread-safe: used by one event loop."""

    def __init__(self, journal: Journal, feed: Feed, outside: DaemonDependencies) -> None:
        self._journal = journal
        self._feed = feed
        self._entropy = outside.entropy
        self._requests = Requests(outside)
        # Set, and another one put in its place, when an app ends.
        self._ended = asyncio.Event()

    # --- for the gates --------------------------------------------------------------------------------------

    def caller(self, token: str, origin: str | None) -> LoopbackCaller:
        """The caller with this token. ``origin``: the exact ``Origin`` header of the request, or None.

        Raises NotPaired, with one message for a token that is unknown, ended, or of another origin (L13).
        """
        now, app = self._journal.now(), self._journal.apps.of_token(token_hash(token))
        if app is None or app.origin != origin or not app.is_live(now):
            raise NotPaired("this is not a valid token of a paired app, or it has ended")
        if app.used is None or now.date() > app.used:
            self._journal.apps.use(app, now.date())
        # Rights that this version does not know are dropped.
        rights = frozenset({Right.ANYONE, *granted(app.rights)})
        return LoopbackCaller(CallerKind.APP, app.name, rights, app.app_id, app.origin)

    def origins(self) -> AbstractSet[str]:
        """The origins that may send requests now: let in by the person, with an open request, or with a live
        app.
        """
        # An app that asked while its site was let in may fetch the answer.
        return self._let_in_or_live() | self._requests.origins()

    async def gone(self, app_id: str) -> None:
        """Returns as soon as the app is revoked or expired: its open requests are then cut."""
        while app := next((one for one in self._live() if one.app_id == app_id), None):
            left = (app.expires - self._journal.now()).total_seconds()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, LOOK_AGAIN_SECONDS)):
                    await self._ended.wait()

    # --- for an app -----------------------------------------------------------------------------------------

    async def ask(self, name: str, rights: AbstractSet[str], origin: str | None = None) -> Pairing:
        """Raises InvalidRequest (the name), NotAllowed (an origin that the person has not let in),
        AlreadyAsking, NameTaken, TooManyPairings.
        """
        if origin is not None and origin not in self._journal.apps.origins(self._journal.now()):
            raise NotAllowed(
                "the person has not let this site in",
                hint="Let it in on the page, or with `signerd pair --origin` and its address.",
            )
        name = clean_name(name)
        require_free(name, origin, self._live(), "is paired already")
        request, secret = self._requests.ask(name, frozenset(granted(rights)), origin)
        who, wanted = app_words(request.name, origin), ", ".join(granted(request.rights))
        self._tell("ask", f"{who[0].upper()}{who[1:]} asks to be paired: {wanted}.")
        return Pairing(
            id=request.pairing_id, secret=_text(secret), code=request.code, seconds=int(LIFE_SECONDS)
        )

    async def collect(self, pairing_id: str, secret: str) -> Collected:
        """The person's answer, and once the token. Raises UnknownPairing, also for a wrong secret."""
        request = self._requests.to_collect(pairing_id, _bytes(secret))
        if request.stage is PairingStage.WAITING:
            return Collected(state="waiting")
        if request.stage is PairingStage.REFUSED:
            self._requests.forget(request)
            return Collected(state="refused")
        token = PREFIX + _text(self._entropy(32))
        now = self._now()
        app = App(
            app_id=self._entropy(16).hex(),
            name=request.name,
            origin=request.origin,
            rights=request.granted,
            token_hash=token_hash(token),
            created=now,
            expires=now + timedelta(days=request.days),
        )
        self._journal.apps.pair(app)
        self._requests.forget(request)
        self._tell("info", f"'{app.name}' is paired until {moment_of(app.expires)}.")
        return Collected(
            state="accepted",
            token=token,
            app_id=app.app_id,
            rights=granted(app.rights),
            expires=moment_of(app.expires),
        )

    async def me(self, caller: LoopbackCaller) -> Me:
        """Raises NotPaired for an unauthenticated caller."""
        if caller.kind is CallerKind.STRANGER:
            raise NotPaired("this caller is not paired")
        return Me(
            kind=caller.kind.value,
            name=caller.name,
            network=str(self._journal.network),
            rights=granted(caller.rights),
            id=caller.app_id,
            origin=caller.origin,
            expires=None if caller.app_id is None else moment_of(self._app(caller.app_id).expires),
        )

    # --- for the person: requests ---------------------------------------------------------------------------

    async def open_requests(self) -> tuple[OpenPairing, ...]:
        """Requests that await the person, and accepted ones that were not collected yet."""
        return tuple(self._view(request) for request in self._requests.open())

    async def accept(
        self, pairing_id: str, code: str, rights: AbstractSet[str] | None = None, days: int = DAYS
    ) -> OpenPairing:
        """Grant what was asked for, or less. Raises UnknownPairing, InvalidRequest (more rights),
        WrongPairingCode.
        """
        request = self._requests.to_answer(pairing_id, PairingStage.ACCEPTED)
        given = request.rights if rights is None else frozenset(granted(rights))
        if not given or not given <= request.rights:
            raise InvalidRequest(
                "rights can only be taken away from those that were asked for, and one must be left",
                hint=f"It asked for: {', '.join(granted(request.rights))}.",
            )
        self._require_code(request, code)
        self._note("app-accepted", request, given)
        accepted = self._requests.answer(request, PairingStage.ACCEPTED, given, days)
        self._tell("info", f"'{request.name}' may fetch its token.")
        return self._view(accepted)

    async def refuse(self, pairing_id: str) -> OpenPairing:
        """Refuse a request, also an accepted one until its token is collected. Raises UnknownPairing."""
        request = self._requests.to_answer(pairing_id, PairingStage.REFUSED)
        self._note("app-refused", request, request.rights)
        self._tell("info", f"'{request.name}' was refused.")
        return self._view(self._requests.answer(request, PairingStage.REFUSED))

    # --- for the person: apps and origins -------------------------------------------------------------------

    async def list(self) -> tuple[AppView, ...]:
        """Every app that was ever paired, the oldest first."""
        now = self._journal.now()
        return tuple(app_view(app, now) for app in self._journal.apps.all())

    async def revoke(self, app_id: str) -> AppView:
        """Invalidate the app's token. Raises UnknownApp; idempotent."""
        app = self._app(app_id)
        if app.revoked is None:
            self._journal.apps.revoke(app, self._now())
            self._end()
            self._tell("info", f"'{app.name}' is not paired any more.")
        return app_view(self._app(app_id), self._journal.now())

    async def list_origins(self) -> tuple[OriginView, ...]:
        return tuple(self._origin(origin) for origin in sorted(self._let_in_or_live()))

    async def let_in(self, origin: str, minutes: int = LET_IN_MINUTES) -> OriginView:
        """Let the origin's pages ask for this many minutes. Raises InvalidRequest for a malformed origin."""
        exact = exact_origin(origin)
        self._journal.apps.let_in(exact, self._now() + timedelta(minutes=minutes))
        self._tell("info", f"{exact} may ask to be paired for {minutes} minutes.")
        return self._origin(exact)

    async def shut_out(self, origin: str) -> OriginView:
        """Revoke the origin's permission to ask, and its apps. Raises InvalidRequest."""
        exact = exact_origin(origin)
        self._journal.apps.shut_out(exact, self._now())
        self._requests.drop(exact)
        self._end()
        self._tell("info", f"{exact} is shut out.")
        return self._origin(exact)

    # --- inside ---------------------------------------------------------------------------------------------

    def _require_code(self, request: PairingRequest, code: str) -> None:
        """Raises WrongPairingCode. The third wrong code ends the request: the app hears that it was
        refused.
        """
        typed = code.replace(" ", "").encode()
        if compare_digest(typed, request.code.encode()):
            return
        counted = self._requests.mistyped(request)
        if counted.tries_left:
            raise WrongPairingCode(f"this is not the code that it shows; {counted.tries_left} tries are left")
        self._note("app-refused", request, request.rights, why="wrong code")
        self._tell("attention", f"'{request.name}' was refused: its code was given wrongly too often.")
        raise WrongPairingCode("this is not the code that it shows: the request is over")

    def _note(self, kind: str, request: PairingRequest, rights: frozenset[str], **why: str) -> None:
        facts = {**facts_of(request.name, request.origin, rights), **why}
        self._journal.note(Note(kind, request.pairing_id, facts))

    def _app(self, app_id: str) -> App:
        """Raises UnknownApp."""
        record = next((app for app in self._journal.apps.all() if app.app_id == app_id), None)
        if record is None:
            raise UnknownApp(f"no app '{app_id}' was ever paired here")
        return record

    def _origin(self, origin: str) -> OriginView:
        apps = tuple(app.app_id for app in self._live() if app.origin == origin)
        until = self._journal.apps.origins(self._journal.now()).get(origin)
        until_text = None if until is None else moment_of(until)
        return OriginView(origin=origin, until=until_text, apps=apps, warning=warning_of(origin))

    def _live(self) -> Iterator[App]:
        now = self._journal.now()
        return (app for app in self._journal.apps.all() if app.is_live(now))

    def _let_in_or_live(self) -> AbstractSet[str]:
        paired = {app.origin for app in self._live() if app.origin is not None}
        return paired | self._journal.apps.origins(self._journal.now()).keys()

    def _end(self) -> None:
        self._ended.set()
        self._ended = asyncio.Event()

    def _view(self, request: PairingRequest) -> OpenPairing:
        accepted = request.stage is PairingStage.ACCEPTED
        return OpenPairing(
            id=request.pairing_id,
            name=request.name,
            origin=request.origin,
            rights=granted(request.granted if accepted else request.rights),
            state="accepted" if accepted else "waiting",
            code=request.code,
            seconds_left=self._requests.seconds_left(request),
            tries_left=request.tries_left,
            warning=warning_of(request.origin),
        )

    def _now(self) -> datetime:
        return self._journal.now().replace(microsecond=0)

    def _tell(self, kind: str, sentence: str) -> None:
        self._feed.add(PAIRING, kind, sentence)


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(secret: str) -> bytes:
    return urlsafe_b64decode(secret + "=" * (-len(secret) % 4))
