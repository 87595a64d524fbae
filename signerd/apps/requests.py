"""Requests to be paired, from the question to the answer: in memory, for minutes, and few of them
(L6, L7).
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum, unique
from hashlib import sha256
from hmac import compare_digest

from signerd.apps.names import folded
from signerd.errors import AlreadyAsking, NameTaken, TooManyPairings, UnknownPairing

# The person has to look at two places and type six digits; what is forgotten is over soon.
LIFE_SECONDS = 120.0
# More than a person answers side by side; requests without a purpose fill a page with no more than these.
MAX_OPEN = 3
# A prompt each ten seconds is already a nuisance.
MAX_PER_MINUTE = 6
# One refused or mistyped, one again, and one more.
MAX_PER_ASKER_AND_MINUTE = 3
# Of a million codes: who guesses has three in a million.
MAX_TRIES = 3
MINUTE = 60.0

Clock = Callable[[], float]
Entropy = Callable[[int], bytes]


@unique
class Stage(StrEnum):
    WAITING = "waiting"
    ACCEPTED = "accepted"
    REFUSED = "refused"


@unique
class Answer(StrEnum):
    YES = "yes"
    NO = "no"
    MISTYPED_TOO_OFTEN = "mistyped-too-often"


# A yes can be taken back while nothing came of it. From every other stage nothing leads on: a request goes
# when it is collected or over.
TABLE = {
    (Stage.WAITING, Answer.YES): Stage.ACCEPTED,
    (Stage.WAITING, Answer.NO): Stage.REFUSED,
    (Stage.WAITING, Answer.MISTYPED_TOO_OFTEN): Stage.REFUSED,
    (Stage.ACCEPTED, Answer.NO): Stage.REFUSED,
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
    stage: Stage = Stage.WAITING
    tries_left: int = MAX_TRIES
    granted: frozenset[str] = frozenset()
    days: int = 0

    @property
    def asker(self) -> str:
        """Which requests count as the same app's: the origin, where a browser vouches for it, else all that
        uses the name.
        """
        return f"program {folded(self.name)}" if self.origin is None else self.origin


class Requests:
    """One loop uses it. ``clock`` is monotonic, in seconds; ``entropy(n)`` gives n random bytes."""

    def __init__(self, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._entropy = entropy
        self._kept: dict[str, PairingRequest] = {}
        self._lately: deque[tuple[float, str]] = deque()

    def ask(self, name: str, rights: frozenset[str], origin: str | None) -> tuple[PairingRequest, bytes]:
        """A new request and its secret. Raises AlreadyAsking, NameTaken, TooManyPairings.

        It takes the place of the one that waits from the same site, whose page was loaded again, unless it
        asks for more: the person may be answering what they read of the first. A program's does not: another
        program could use its name.
        """
        secret = self._entropy(32)
        asked = PairingRequest(
            pairing_id=self._entropy(16).hex(),
            name=name,
            origin=origin,
            rights=rights,
            code=f"{int.from_bytes(self._entropy(8)) % 1_000_000:06d}",
            secret_hash=sha256(secret).digest(),
            until=self._clock() + LIFE_SECONDS,
        )
        ours = [one for one in self.waiting() if origin is not None and one.origin == origin]
        replaced = [one for one in ours if rights <= one.rights]
        self._require_room(asked.asker, len(replaced))
        self._require_new(asked)
        for one in replaced:
            self.forget(one)
        self._kept[asked.pairing_id] = asked
        self._lately.append((self._clock(), asked.asker))
        return asked, secret

    def waiting(self) -> tuple[PairingRequest, ...]:
        """Those that the person has not answered, the oldest first."""
        self._forget_what_is_over()
        return tuple(asked for asked in self._kept.values() if asked.stage is Stage.WAITING)

    def open(self) -> tuple[PairingRequest, ...]:
        """Those out of which a token may still come, the oldest first: also accepted ones that were not
        collected yet.
        """
        self._forget_what_is_over()
        return tuple(asked for asked in self._kept.values() if asked.stage is not Stage.REFUSED)

    def to_answer(self, pairing_id: str, given: Answer) -> PairingRequest:
        """Raises UnknownPairing, also for one that cannot be answered so any more."""
        self._forget_what_is_over()
        found = self._kept.get(pairing_id)
        if found is None or (found.stage, given) not in TABLE:
            raise _unknown()
        return found

    def to_collect(self, pairing_id: str, secret: bytes) -> PairingRequest:
        """Raises UnknownPairing, in the same words for an unknown id and another secret."""
        self._forget_what_is_over()
        found = self._kept.get(pairing_id)
        if found is None or not compare_digest(found.secret_hash, sha256(secret).digest()):
            raise _unknown()
        return found

    def mistyped(self, asked: PairingRequest) -> PairingRequest:
        """A wrong code was given; the last one ends the request."""
        counted = replace(asked, tries_left=asked.tries_left - 1)
        self._kept[asked.pairing_id] = counted
        return counted if counted.tries_left else self.answer(counted, Answer.MISTYPED_TOO_OFTEN)

    def answer(
        self, asked: PairingRequest, given: Answer, *, granted: frozenset[str] = frozenset(), days: int = 0
    ) -> PairingRequest:
        """The app has its time anew, to hear it."""
        stage, until = TABLE[asked.stage, given], self._clock() + LIFE_SECONDS
        answered = replace(asked, stage=stage, granted=granted, days=days, until=until)
        self._kept[asked.pairing_id] = answered
        return answered

    def forget(self, asked: PairingRequest) -> None:
        del self._kept[asked.pairing_id]

    def drop(self, origin: str) -> None:
        """Everything this origin asked for, answered or not."""
        self._kept = {key: asked for key, asked in self._kept.items() if asked.origin != origin}

    def origins(self) -> set[str]:
        """Those of the requests that are not over."""
        self._forget_what_is_over()
        return {asked.origin for asked in self._kept.values() if asked.origin is not None}

    def seconds_left(self, asked: PairingRequest) -> int:
        return max(0, int(asked.until - self._clock()))

    def _require_room(self, asker: str, replaced: int) -> None:
        """Raises AlreadyAsking, TooManyPairings."""
        waiting, now = self.waiting(), self._clock()
        if not replaced and any(asked.asker == asker for asked in waiting):
            raise AlreadyAsking("this app asks already, and the person has not answered yet")
        if len(waiting) - replaced >= MAX_OPEN:
            raise TooManyPairings(f"{MAX_OPEN} apps ask already, and the person has not answered yet")
        while self._lately and self._lately[0][0] <= now - MINUTE:
            self._lately.popleft()
        if sum(who == asker for _at, who in self._lately) >= MAX_PER_ASKER_AND_MINUTE:
            raise TooManyPairings(f"this app asked {MAX_PER_ASKER_AND_MINUTE} times within a minute")
        if len(self._lately) >= MAX_PER_MINUTE:
            raise TooManyPairings(f"apps asked {MAX_PER_MINUTE} times within a minute")

    def _require_new(self, asked: PairingRequest) -> None:
        """L8: a site may ask again under its name, which no other app can use. Raises NameTaken."""
        kept = (one for one in self._kept.values() if one.stage is not Stage.REFUSED)
        taken = (one for one in kept if folded(one.name) == folded(asked.name))
        if any(asked.origin is None or one.origin != asked.origin for one in taken):
            raise NameTaken(f"an app '{asked.name}' asks already")

    def _forget_what_is_over(self) -> None:
        now = self._clock()
        self._kept = {key: asked for key, asked in self._kept.items() if asked.until > now}


def _unknown() -> UnknownPairing:
    return UnknownPairing("there is no such request to be paired, or it is over")
