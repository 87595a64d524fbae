"""Whose token this is: from memory at every request, by the token's hash; the journal is asked when something changed."""

import asyncio
import contextlib
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256

from signerd.callers import Caller, Kind, Right, granted
from signerd.errors import NotPaired
from signerd.journal import Journal
from signerd.journal.apps import App

# So that what leaks into a log or a repository is known for what it is.
PREFIX = "signerd_"
# The wall clock may be set, and a machine may sleep: an app's end is looked at again after this long.
LOOK_AGAIN_SECONDS = 60.0


def token_hash(token: str) -> bytes:
    """What is kept of a token: with 256 random bits in it, a plain hash cannot be turned back."""
    return sha256(token.encode(errors="replace")).digest()


@dataclass(frozen=True)
class _Known:
    app: App
    caller: Caller


class Tokens:
    """One loop uses it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._ended: dict[str, asyncio.Event] = {}
        self._known: dict[bytes, _Known] = {}
        self._let_in: dict[str, datetime] = {}
        self.refresh()

    def refresh(self) -> None:
        """Read anew what the journal holds; what is over wakes whoever waits for its end."""
        live = (app for app in self._journal.apps.all() if app.revoked is None)
        self._known = {app.token_hash: _Known(app, _caller(app)) for app in live}
        self._let_in = dict(self._journal.apps.origins())
        there = {known.app.app_id for known in self._known.values()}
        for app_id in self._ended.keys() - there:
            self._ended.pop(app_id).set()

    def caller(self, token: str, origin: str | None) -> Caller:
        """Raises NotPaired: nothing in it tells whoever found a token why it is worth nothing (L13)."""
        hashed, now = token_hash(token), self._journal.now()
        known = self._known.get(hashed)
        if known is None or known.app.origin != origin or now >= known.app.expires:
            raise NotPaired("this is no paired app's token, or it is over")
        self._note_use(hashed, known, now)
        return known.caller

    def origins(self) -> AbstractSet[str]:
        paired = {app.origin for app in self.live()}
        return {origin for origin in paired if origin is not None} | self.let_in_now().keys()

    def live(self) -> tuple[App, ...]:
        now = self._journal.now()
        return tuple(known.app for known in self._known.values() if now < known.app.expires)

    def let_in_now(self) -> dict[str, datetime]:
        """Until when the pages of which origins may ask."""
        now = self._journal.now()
        return {origin: until for origin, until in self._let_in.items() if now < until}

    async def gone(self, app_id: str) -> None:
        """Returns when the app is revoked, or over by the wall clock."""
        while (left := self._seconds_left(app_id)) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, LOOK_AGAIN_SECONDS)):
                    await self._ended.setdefault(app_id, asyncio.Event()).wait()

    def _seconds_left(self, app_id: str) -> float:
        found = next((known.app for known in self._known.values() if known.app.app_id == app_id), None)
        return 0.0 if found is None else (found.expires - self._journal.now()).total_seconds()

    def _note_use(self, hashed: bytes, known: _Known, now: datetime) -> None:
        """Once a day: which days an app was at work is worth a line, each of its requests is not."""
        if known.app.used is not None and now.date() <= known.app.used:
            return
        self._journal.apps.use(known.app, now.date())
        self._known[hashed] = replace(known, app=replace(known.app, used=now.date()))


def _caller(app: App) -> Caller:
    # A right that this version does not know is none.
    rights = frozenset({Right.ANYONE, *granted(app.rights)})
    return Caller(Kind.APP, app.name, rights, app.app_id, app.origin)
