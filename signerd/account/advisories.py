"""Signed advisories on this machine: taken from a file or the platform, believed by their signature alone,
and held against the devices of the registered keys.

What a device said of itself at its registration is in the journal's chain. What is not known counts as
exposed (ADR 32).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from custody.advisories import (
    AdvisoriesRefused,
    Advisory,
    AdvisoryList,
    Concern,
    Held,
    KeyFacts,
    MalformedAdvisories,
    believe,
    moment_of,
    read_list,
)
from custody.schemas.advisories import AdvisoryPublisher
from multisig import Network
from signerd.core.audit import Note
from signerd.core.events import Effect, Level, Notify
from signerd.core.text import foreign
from signerd.errors import AdvisoriesNotTaken
from signerd.feed import Troubles
from signerd.journal import Journal

SUBJECT = "advisories"


@dataclass(frozen=True)
class Concerned:
    """An advisory in force. ``devices``: of this person, with the vaults that hold their keys, in words."""

    publisher: str
    serial: int
    is_over: bool
    advisory: Advisory
    concern: Concern
    devices: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What to tell the person where it concerns them."""
        kind = "DRILL" if self.advisory.drill else "ADVISORY"
        may = "" if self.concern is Concern.EXPOSED else "may "
        whom = "; ".join(self.devices)
        over = " The publisher's list is over: ask for a newer one." if self.is_over else ""
        return (
            f"{kind} {self.advisory.id} {may}concern{'' if may else 's'} {whom}. {self.advisory.text} "
            f"What to do: {self.advisory.advice}{over}"
        )


@dataclass(frozen=True)
class Advisories:
    """``trusted``: the publishers' keys that the person has configured."""

    journal: Journal
    trusted: Collection[str]
    troubles: Troubles

    def take(self, data: bytes) -> tuple[Effect, ...]:
        """A publisher's newest list, from wherever it came; what the person is told of it.

        Raises AdvisoriesNotTaken: what was held stays.
        """
        book = self.journal.advisories
        try:
            _, held = believe(data, self.trusted, book.held(), self.journal.now())
        except AdvisoriesRefused as error:
            raise AdvisoriesNotTaken(str(error)) from None
        if any(each.digest == held.digest for each in book.held()):
            return ()
        before = {(each.advisory.id, each.sentence) for each in self.in_force()}
        facts = {"digest": held.digest, "epoch": held.epoch, "serial": held.serial}
        with self.journal.noted("advisories", Note("advisories-taken", held.root, facts)):
            book.write(held)
        return tuple(
            Notify(SUBJECT, Level.ALARM, each.sentence)
            for each in self.in_force()
            if each.concern is not Concern.NOT and (each.advisory.id, each.sentence) not in before
        )

    def hear(self, shown: Collection[AdvisoryPublisher]) -> tuple[Effect, ...]:
        """What the platform shows. A list that is refused stands in the status as long as it is shown."""
        effects: list[Effect] = []
        refused: dict[str, str] = {}
        for each in shown:
            try:
                effects += self.take(each.list.encode())
            except AdvisoriesNotTaken as error:
                who = foreign(each.publisher)[:64]
                refused[who] = f"The platform's advisories of the publisher {who} are not taken: {error}"
        self.troubles.stand(SUBJECT, refused)
        return tuple(effects)

    def in_force(self) -> tuple[Concerned, ...]:
        """All that trusted publishers have in force, in their order."""
        book, now = self.journal.advisories, self.journal.now()
        lists = [(held.root, told) for held in self._held() if (told := _told(held.line)) is not None]
        nothing = KeyFacts(None, None, None, None, f"{now:%Y-%m-%d}")
        known = book.registrations() if lists else {}
        keys = [
            (fingerprint, known.get(fingerprint, nothing), vaults)
            for fingerprint, vaults in (self._places().items() if lists else ())
        ]
        return tuple(
            self._concerned(root, told, each, keys, now) for root, told in lists for each in told.advisories
        )

    def notes(self) -> Iterator[str]:
        """For the status: what concerns this person."""
        for held in self._held():
            if _told(held.line) is None:
                yield (
                    f"The held advisories of the publisher {held.root} cannot be read any more. "
                    "What to do: ask for its newest list, and take it with `signerd advisory add`."
                )
        yield from (each.sentence for each in self.in_force() if each.concern is not Concern.NOT)

    def _held(self) -> list[Held]:
        return [held for held in self.journal.advisories.held() if held.root in self.trusted]

    def _concerned(
        self,
        root: str,
        told: AdvisoryList,
        advisory: Advisory,
        keys: Iterable[tuple[str, KeyFacts, Sequence[str]]],
        now: datetime,
    ) -> Concerned:
        found, worst = [], Concern.NOT
        for fingerprint, facts, vaults in keys:
            concern = self._of(advisory, facts)
            if concern is Concern.NOT:
                continue
            worst = concern if worst is not Concern.EXPOSED else worst
            device = facts.model or facts.maker or "a device of which nothing is known"
            where = f", in the vault {', '.join(vaults)}" if vaults else ""
            found.append(f"your key {fingerprint} on {foreign(device)}{where}")
        is_over = moment_of(told.expires) <= now
        return Concerned(root, told.serial, is_over, advisory, worst, tuple(found))

    def _places(self) -> dict[str, list[str]]:
        """By the device's master fingerprint: the pinned vaults that hold a key of it, in words."""
        places: dict[str, list[str]] = {str(own.key.fingerprint): [] for own in self.journal.own_keys()}
        for pin in self.journal.pins():
            places.setdefault(str(pin.own_key.fingerprint), []).append(f"'{foreign(pin.name)}'")
        return places

    def _of(self, advisory: Advisory, facts: KeyFacts) -> Concern:
        if advisory.drill and self.journal.network is Network.MAINNET:
            return Concern.NOT
        return advisory.concern(facts)


@lru_cache(maxsize=32)
def _told(line: bytes) -> AdvisoryList | None:
    """A list that was believed once; None where this version knows its form no more."""
    try:
        return read_list(line)
    except MalformedAdvisories:
        return None
