"""Requests to be paired: in memory, for minutes, and few of them (L6, L7)."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum, unique
from hashlib import sha256
from hmac import compare_digest

from custody.common.text import name_key
from signerd.errors import AlreadyAsking, NameTaken, TooManyPairings, UnknownPairing
from signerd.journal.apps import App
from signerd.runtime import DaemonDependencies

# Long enough to look at two places and type six digits.
LIFE_SECONDS = 120.0
# More than a person answers at once, and few enough to keep the page readable.
MAX_OPEN = 3
# More would be a nuisance.
MAX_PER_MINUTE = 6
# Enough to try again after a refusal or a mistyped code.
MAX_PER_ASKER_AND_MINUTE = 3
# Guessing succeeds with a chance of three in a million.
MAX_TRIES = 3
MINUTE = 60.0
UNKNOWN = "there is no such request to be paired, or it is over"


@unique
class PairingStage(StrEnum):
    WAITING = "waiting"
    ACCEPTED = "accepted"
    REFUSED = "refused"


# An acceptance can be withdrawn until the token is collected. A refusal is final; the request is removed when
# it is collected or expires.
ANSWERS = {
    PairingStage.WAITING: (PairingStage.ACCEPTED, PairingStage.REFUSED),
    PairingStage.ACCEPTED: (PairingStage.REFUSED,),
    PairingStage.REFUSED: (),
}


@dataclass(frozen=True)
class PairingRequest:
    """``until``: by the monotonic clock. ``granted`` and ``days``: of an accepted one."""

    pairing_id: str
    name: str
    origin: str | None
    rights: frozenset[str]
    code: str = field(repr=False)
    secret_hash: bytes = field(repr=False)
    until: float
    stage: PairingStage = PairingStage.WAITING
    tries_left: int = MAX_TRIES
    granted: frozenset[str] = frozenset()
    days: int = 0

    @property
    def asker(self) -> str:
        """What identifies the asking app: its origin, which the browser states, or else its name."""
        return f"program {name_key(self.name)}" if self.origin is None else self.origin


def require_free(name: str, origin: str | None, known: Iterable[App | PairingRequest], does: str) -> None:
    """L8: the person could not tell two apps of one name apart; only the same site may ask again under it.
    Raises NameTaken.
    """
    taken = (one for one in known if name_key(one.name) == name_key(name))
    if any(origin is None or one.origin != origin for one in taken):
        raise NameTaken(f"an app '{name}' {does}")


@dataclass
class Requests:
    """Not thread-safe: used by one event loop."""

    outside: DaemonDependencies
    _kept: dict[str, PairingRequest] = field(default_factory=dict)
    _lately: deque[tuple[float, str]] = field(default_factory=deque)

    def ask(self, name: str, rights: frozenset[str], origin: str | None) -> tuple[PairingRequest, bytes]:
        """A new request and its secret. Raises AlreadyAsking, NameTaken, TooManyPairings.

        It replaces a waiting request of the same origin, whose page was reloaded, unless it asks for more
        rights: the person may be answering the first. A program's request is not replaced: another program
        could use its name.
        """
        secret = self.outside.entropy(32)
        request = PairingRequest(
            pairing_id=self.outside.entropy(16).hex(),
            name=name,
            origin=origin,
            rights=rights,
            code=f"{int.from_bytes(self.outside.entropy(8)) % 1_000_000:06d}",
            secret_hash=sha256(secret).digest(),
            until=self.outside.clock() + LIFE_SECONDS,
        )
        ours = [one for one in self.waiting() if origin is not None and one.origin == origin]
        replaced = [one for one in ours if rights <= one.rights]
        self._require_room(request.asker, len(replaced))
        require_free(name, origin, self.open(), "asks already")
        for one in replaced:
            self.forget(one)
        self._kept[request.pairing_id] = request
        self._lately.append((self.outside.clock(), request.asker))
        return request, secret

    def waiting(self) -> tuple[PairingRequest, ...]:
        """Requests that the person has not answered, the oldest first."""
        return tuple(request for request in self._live().values() if request.stage is PairingStage.WAITING)

    def open(self) -> tuple[PairingRequest, ...]:
        """Requests that may still yield a token, the oldest first: also accepted ones that were not collected
        yet.
        """
        return tuple(
            request for request in self._live().values() if request.stage is not PairingStage.REFUSED
        )

    def to_answer(self, pairing_id: str, answer: PairingStage) -> PairingRequest:
        """Raises UnknownPairing, also for a request that can no longer get this answer."""
        request = self._live().get(pairing_id)
        if request is None or answer not in ANSWERS[request.stage]:
            raise UnknownPairing(UNKNOWN)
        return request

    def to_collect(self, pairing_id: str, secret: bytes) -> PairingRequest:
        """Raises UnknownPairing, with one message for an unknown id and a wrong secret."""
        request = self._live().get(pairing_id)
        if request is None or not compare_digest(request.secret_hash, sha256(secret).digest()):
            raise UnknownPairing(UNKNOWN)
        return request

    def mistyped(self, request: PairingRequest) -> PairingRequest:
        """A wrong code was given; the last one ends the request."""
        counted = replace(request, tries_left=request.tries_left - 1)
        self._kept[request.pairing_id] = counted
        return counted if counted.tries_left else self.answer(counted, PairingStage.REFUSED)

    def answer(
        self,
        request: PairingRequest,
        stage: PairingStage,
        granted: frozenset[str] = frozenset(),
        days: int = 0,
    ) -> PairingRequest:
        """Record the answer; the app gets the full time again to fetch it."""
        until = self.outside.clock() + LIFE_SECONDS
        answered = replace(request, stage=stage, granted=granted, days=days, until=until)
        self._kept[request.pairing_id] = answered
        return answered

    def forget(self, request: PairingRequest) -> None:
        del self._kept[request.pairing_id]

    def drop(self, origin: str) -> None:
        """Remove all requests of this origin."""
        self._kept = {key: request for key, request in self._kept.items() if request.origin != origin}

    def origins(self) -> set[str]:
        """The origins of live requests."""
        return {request.origin for request in self._live().values() if request.origin is not None}

    def seconds_left(self, request: PairingRequest) -> int:
        return max(0, int(request.until - self.outside.clock()))

    def _require_room(self, asker: str, replaced: int) -> None:
        """Raises AlreadyAsking, TooManyPairings."""
        waiting, now = self.waiting(), self.outside.clock()
        if not replaced and any(request.asker == asker for request in waiting):
            raise AlreadyAsking("this app asks already, and the person has not answered yet")
        if len(waiting) - replaced >= MAX_OPEN:
            raise TooManyPairings(f"{MAX_OPEN} apps ask already, and the person has not answered yet")
        while self._lately and self._lately[0][0] <= now - MINUTE:
            self._lately.popleft()
        if sum(who == asker for _at, who in self._lately) >= MAX_PER_ASKER_AND_MINUTE:
            raise TooManyPairings(f"this app asked {MAX_PER_ASKER_AND_MINUTE} times within a minute")
        if len(self._lately) >= MAX_PER_MINUTE:
            raise TooManyPairings(f"apps asked {MAX_PER_MINUTE} times within a minute")

    def _live(self) -> dict[str, PairingRequest]:
        """Those that are kept, without those that have expired."""
        now = self.outside.clock()
        self._kept = {key: request for key, request in self._kept.items() if request.until > now}
        return self._kept
