"""One operation's talk with its device: calls that belong together, none of them after a cancel."""

import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from firmware_bridge import answers, arguments, protocol
from firmware_bridge.errors import NotEnrolled, WrongDevice
from firmware_bridge.families import clean_detail
from firmware_bridge.lane import OnNote
from firmware_bridge.model import Deadlines, Progress
from firmware_bridge.port import Question
from firmware_bridge.record import Record
from firmware_bridge.registrations import Registration, Registrations
from firmware_bridge.roster import Roster
from multisig import DerivationPath, Fingerprint, Network, OriginKey, Policy, Vault

OnProgress = Callable[[Progress], None]
# Answers what a device wants to know from a person; None where the person is to do it on the device, or gives up.
Ask = Callable[[Question], Awaitable[str | None]]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Dependencies:
    """What every operation of one bridge shares."""

    network: Network
    deadlines: Deadlines
    roster: Roster
    registrations: Registrations


class Conversation:
    """What one operation says to the device of `record`, which it has to itself."""

    def __init__(
        self,
        dependencies: Dependencies,
        record: Record,
        on_progress: OnProgress | None = None,
        ask: Ask | None = None,
    ) -> None:
        self.dependencies = dependencies
        self.record = record
        self._on_progress = on_progress
        self._ask = ask

    async def call(
        self,
        op: str,
        args: Mapping[str, Any] | None = None,
        *,
        deadline: float,
        person: float | None = None,
        listen: OnNote | None = None,
    ) -> Any:
        """One call of an operation that may make several. `deadline`, `person`: see `Lane.call`. `listen` hears every note of it.

        :raises Cancelled: the operation was given up between two calls, or while it waited for the device.
        :raises Disconnected: the device left between two calls.
        """
        self.record.require_wanted()
        return await self.record.lane.call(
            op, args, deadline=deadline, person=person, on_note=self._on_note(listen), on_ask=self._ask
        )

    def tell(self, step: str, text: str) -> None:
        """To whoever follows the operation."""
        if self._on_progress is not None:
            _tell(self._on_progress, Progress(self.record.device.id, step, text))

    async def read_fingerprint(self) -> Fingerprint:
        answer = await self.call("fingerprint", deadline=self.dependencies.deadlines.read)
        return answers.fingerprint(answer)

    async def read_signer(self, policy: Policy, wanted: Fingerprint | None = None) -> Fingerprint:
        """Whose keys the device holds, once more asked.

        :raises WrongDevice: it is no signer of the policy, not the wanted one, or not the one that was here before (S18).
        """
        known = self.record.device.fingerprint
        fingerprint = await self.read_fingerprint()
        self.dependencies.roster.identify(self.record, fingerprint)
        if known is not None and known != fingerprint:
            raise WrongDevice(f"This device was {known} before and is {fingerprint} now.")
        if wanted is not None and wanted != fingerprint:
            raise WrongDevice(f"This device is {fingerprint}, and {wanted} is to sign.")
        if policy.cosigner_for(fingerprint) is None:
            raise WrongDevice(f"This device ({fingerprint}) is no signer here.")
        return fingerprint

    async def read_xpubs(self, paths: Sequence[DerivationPath]) -> tuple[OriginKey, ...]:
        answer = await self.call(
            "xpubs",
            {"paths": [str(path) for path in paths]},
            deadline=self.dependencies.deadlines.reading(len(paths)),
        )
        fingerprint, texts = answers.xpubs(answer, len(paths))
        self.dependencies.roster.identify(self.record, fingerprint)
        pairs = zip(paths, texts, strict=True)
        network = self.dependencies.network
        return tuple(answers.origin_key(fingerprint, path, text, network) for path, text in pairs)

    def registration(self, signer: Fingerprint, policy: Policy) -> Registration | None:
        if not isinstance(policy, Vault):
            return None
        return self.dependencies.registrations.find(signer, policy.verification_code)

    async def ask_person(self, op: str, args: Mapping[str, Any] | None = None) -> Any:
        """A call by which the device asks its person something that is short to load and to answer."""
        deadlines = self.dependencies.deadlines
        return await self.call(op, args, deadline=deadlines.work, person=deadlines.person)

    async def call_about(
        self,
        policy: Policy,
        signer: Fingerprint,
        op: str,
        args: Mapping[str, Any],
        *,
        deadline: float,
        person: float,
        listen: OnNote | None = None,
    ) -> Any:
        """A call that needs the device to know the policy.

        :raises NotEnrolled: it does not; a registration that it no longer takes is forgotten.
        """
        known = self.registration(signer, policy)
        try:
            told = {**args, "policy": arguments.policy(policy, known)}
            return await self.call(op, told, deadline=deadline, person=person, listen=listen)
        except NotEnrolled:
            if isinstance(policy, Vault):
                self.record.unknown_vaults.add((signer, policy.verification_code))
            if known is not None:
                with _unkept():
                    self.dependencies.registrations.forget(known)
            raise

    def keep(self, registration: Registration) -> None:
        """The person has approved it on the device: that it could not be kept must not take that back."""
        with _unkept():
            self.dependencies.registrations.keep(registration)

    def _on_note(self, listen: OnNote | None) -> OnNote | None:
        on_progress = self._on_progress
        if on_progress is None:
            return listen
        device_id = self.record.device.id

        def pass_on(note: protocol.Note) -> None:
            if listen is not None:
                listen(note)
            _tell(on_progress, _progress(device_id, note))

        return pass_on


@contextlib.contextmanager
def _unkept() -> Iterator[None]:
    """Around the program's store of registrations. What it loses costs a person one more look, and no operation."""
    try:
        yield
    except OSError:
        _log.exception("the registrations could not be stored")


def _progress(device_id: str, note: protocol.Note) -> Progress:
    """What a worker says, fit for a screen (L8): one line, and a count only where it counts something."""
    done, total = note.done, note.total
    if done is None or total is None or not 0 <= done <= total:
        done = total = None
    return Progress(device_id, clean_detail(note.step), clean_detail(note.text), done, total)


def _tell(on_progress: OnProgress, progress: Progress) -> None:
    try:
        on_progress(progress)
    except Exception:  # noqa: BLE001 - the caller's code: its bug must not cost a signature that a person has approved
        _log.exception("a progress callback failed")
