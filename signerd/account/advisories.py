"""Signed advisories on this machine: from a file or the platform, verified by their signature alone, and
compared with the devices of the registered keys.

The journal has what each device reported when it was registered. An unknown fact counts as exposed (ADR 32).
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
class AdvisoryInForce:
    """An advisory in force. ``devices``: descriptions of this person's devices that it concerns, with their
    vaults.
    """

    publisher: str
    serial: int
    is_over: bool
    advisory: Advisory
    concern: Concern
    devices: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The sentence for a person whom it concerns."""
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

    def add(self, data: bytes) -> tuple[Effect, ...]:
        """Verify and store a publisher's newest list, from any source. Returns notifications for the person.

        Raises AdvisoriesNotTaken: the stored list is unchanged.
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

    def add_shown(self, shown: Collection[AdvisoryPublisher]) -> tuple[Effect, ...]:
        """Add the lists that the platform shows. A refused list is reported in the status while the platform
        shows it.
        """
        effects: list[Effect] = []
        refused: dict[str, str] = {}
        for each in shown:
            try:
                effects += self.add(each.list.encode())
            except AdvisoriesNotTaken as error:
                who = foreign(each.publisher)[:64]
                refused[who] = f"The platform's advisories of the publisher {who} are refused: {error}"
        self.troubles.report(SUBJECT, refused)
        return tuple(effects)

    def in_force(self) -> tuple[AdvisoryInForce, ...]:
        """Every advisory in force of a trusted publisher."""
        book, now = self.journal.advisories, self.journal.now()
        lists = [(held.root, listed) for held in self._held() if (listed := _parsed(held.line)) is not None]
        nothing = KeyFacts(None, None, None, None, f"{now:%Y-%m-%d}")
        known = book.registrations() if lists else {}
        keys = [
            (fingerprint, known.get(fingerprint, nothing), vaults)
            for fingerprint, vaults in (self._places().items() if lists else ())
        ]
        return tuple(
            self._concerned(root, listed, each, keys, now)
            for root, listed in lists
            for each in listed.advisories
        )

    def notes(self) -> Iterator[str]:
        """Sentences for the status: advisories that concern this person."""
        for held in self._held():
            if _parsed(held.line) is None:
                yield (
                    f"The held advisories of the publisher {held.root} cannot be read any more. "
                    "What to do: ask for its newest list, and add it with `signerd advisory add`."
                )
        yield from (each.sentence for each in self.in_force() if each.concern is not Concern.NOT)

    def _held(self) -> list[Held]:
        return [held for held in self.journal.advisories.held() if held.root in self.trusted]

    def _concerned(
        self,
        root: str,
        listed: AdvisoryList,
        advisory: Advisory,
        keys: Iterable[tuple[str, KeyFacts, Sequence[str]]],
        now: datetime,
    ) -> AdvisoryInForce:
        found, worst = [], Concern.NOT
        for fingerprint, facts, vaults in keys:
            concern = self._of(advisory, facts)
            if concern is Concern.NOT:
                continue
            worst = concern if worst is not Concern.EXPOSED else worst
            device = facts.model or facts.maker or "an unknown device"
            where = f", in the vault {', '.join(vaults)}" if vaults else ""
            found.append(f"your key {fingerprint} on {foreign(device)}{where}")
        is_over = moment_of(listed.expires) <= now
        return AdvisoryInForce(root, listed.serial, is_over, advisory, worst, tuple(found))

    def _places(self) -> dict[str, list[str]]:
        """The names of the pinned vaults that hold a key of each device, by its master fingerprint."""
        places: dict[str, list[str]] = {str(own.key.fingerprint): [] for own in self.journal.own_keys()}
        for pin in self.journal.pins():
            places.setdefault(str(pin.own_key.fingerprint), []).append(f"'{foreign(pin.name)}'")
        return places

    def _of(self, advisory: Advisory, facts: KeyFacts) -> Concern:
        if advisory.drill and self.journal.network is Network.MAINNET:
            return Concern.NOT
        return advisory.concern(facts)


@lru_cache(maxsize=32)
def _parsed(line: bytes) -> AdvisoryList | None:
    """Parse a stored list; None if this version no longer supports its format."""
    try:
        return read_list(line)
    except MalformedAdvisories:
        return None
