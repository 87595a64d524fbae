"""One operation's talk with its device: calls that belong together, none of them after a cancel."""

import base64
import contextlib
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from firmware_bridge import calls, protocol, sanitised_psbt
from firmware_bridge.enrolment import Registration, Registrations
from firmware_bridge.errors import (
    BadDeviceSignature,
    BridgeError,
    Busy,
    Cancelled,
    DeviceFault,
    Disconnected,
    NotEnrolled,
    TimedOut,
    WorkerCrashed,
    WrongDevice,
)
from firmware_bridge.families import clean_detail
from firmware_bridge.lane import OnNote
from firmware_bridge.model import Deadlines, Progress
from firmware_bridge.protocol import TAKEN, Question
from firmware_bridge.record import Answered, Record
from firmware_bridge.roster import Roster
from multisig import DerivationPath, Fingerprint, Network, OriginKey, Policy, Psbt, Vault, signer_progress

# FOLDED from firmware_bridge/signing.py: One signature of a transaction: sound on its way to the device, believed on its way back only as far as it verifies.


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
        return calls.fingerprint(answer)

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
        fingerprint, texts = calls.xpubs(answer, len(paths))
        self.dependencies.roster.identify(self.record, fingerprint)
        pairs = zip(paths, texts, strict=True)
        network = self.dependencies.network
        return tuple(calls.origin_key(fingerprint, path, text, network) for path, text in pairs)

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
            told = {**args, "policy": calls.policy_args(policy, known)}
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


# How an operation can end while the device may still wait for the person, or hold the answer. A fault may be the words of
# another program, which has taken the session of a Coldcard while it asked.
_UNANSWERED: Final = (TimedOut, Cancelled, WorkerCrashed, Disconnected, DeviceFault, Busy)


@dataclass(frozen=True)
class _Errand:
    """What is to be signed, by whom, and the bytes that go to the device."""

    psbt: Psbt
    policy: Policy
    signer: Fingerprint
    content: bytes

    @property
    def digest(self) -> bytes:
        return hashlib.sha256(self.content).digest()


async def sign(talk: Conversation, psbt: Psbt, policy: Policy, wanted: Fingerprint | None) -> Psbt:
    """See `firmware_bridge.Bridge.sign`. The PSBT has been found sound already."""
    signer = await talk.read_signer(policy, wanted)
    if signer_progress(psbt, policy, signer).is_complete:
        return psbt
    errand = _Errand(psbt, policy, signer, sanitised_psbt.for_device(psbt, policy))
    answer = _earlier_answer(talk, errand) or await _fresh_answer(talk, errand)
    signed = sanitised_psbt.take_back(psbt, answer, policy, signer)
    _tell_missing(talk, errand, signed)
    return signed


def _earlier_answer(talk: Conversation, errand: _Errand) -> str | None:
    """What the same device said to the same transaction, when it left before it could be asked once more who it is.

    It has been asked now: the look at its keys that was missing then.
    """
    answered, talk.record.answered = talk.record.answered, None
    if answered is None or (answered.digest, answered.signer) != (errand.digest, errand.signer):
        return None
    return answered.psbt


async def _fresh_answer(talk: Conversation, errand: _Errand) -> str:
    """:raises WrongDevice: the keys changed while the device signed (S18)."""
    answer = await _ask_person(talk, errand)
    try:
        signer = await talk.read_fingerprint()
    except Cancelled:
        raise
    except BridgeError:
        _remember(talk, errand, answer)
        raise
    if signer != errand.signer:
        raise WrongDevice("The device changed its keys while it signed; its signatures are not used.")
    return answer


def _remember(talk: Conversation, errand: _Errand, answer: str) -> None:
    """A person has approved it: that is not asked for twice because of a loose cable. What is worth nothing is forgotten."""
    with contextlib.suppress(BadDeviceSignature, DeviceFault):
        if sanitised_psbt.take_back(errand.psbt, answer, errand.policy, errand.signer) != errand.psbt:
            talk.record.answered = Answered(errand.digest, errand.signer, answer)


async def _ask_person(talk: Conversation, errand: _Errand) -> str:
    record, psbt = talk.record, errand.psbt
    args = {
        "psbt": base64.b64encode(errand.content).decode(),
        "payments": calls.count_payments(psbt, errand.policy),
        "resume": record.unanswered == errand.digest,
    }

    def listen(note: protocol.Note) -> None:
        # Only now does it take the place of what the device asked about before.
        if note.step == TAKEN:
            record.unanswered = errand.digest

    deadlines, inputs = talk.dependencies.deadlines, len(psbt.inputs)
    try:
        answer = await talk.call_about(
            errand.policy,
            errand.signer,
            "sign",
            args,
            deadline=deadlines.signing(inputs, len(errand.content)),
            person=deadlines.review(inputs),
            listen=listen,
        )
    except _UNANSWERED:
        raise
    except BridgeError:
        _forget_question(record, errand)
        raise
    _forget_question(record, errand)
    return str(answer)


def _forget_question(record: Record, errand: _Errand) -> None:
    """It is settled. A question about another transaction, which this one was too early for, is not."""
    if record.unanswered == errand.digest:
        record.unanswered = None


def _tell_missing(talk: Conversation, errand: _Errand, signed: Psbt) -> None:
    """:raises DeviceFault: the device said that it signed, and did not."""
    missing = signer_progress(signed, errand.policy, errand.signer).missing
    if not missing:
        return
    if signed == errand.psbt:
        raise DeviceFault("it returned no signature")
    inputs = ", ".join(str(index) for index in missing)
    talk.tell("incomplete", f"The device left these inputs unsigned: {inputs}.")
