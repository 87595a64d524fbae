"""One operation on one device: its calls, none of them after a cancel; and the signing."""

import base64
import contextlib
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
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
    Unsupported,
    WorkerCrashed,
    WrongDevice,
)
from firmware_bridge.faults import clean_detail
from firmware_bridge.lane import OnNote
from firmware_bridge.limits import why_not
from firmware_bridge.makers import MAKERS, why_no_proof
from firmware_bridge.model import Deadlines, Progress
from firmware_bridge.operations import Arguments, Keys, PolicyText, Sign, Xpubs
from firmware_bridge.protocol import TAKEN, Question
from firmware_bridge.record import DeviceAnswer, DeviceRecord
from firmware_bridge.roster import Roster
from multisig import DerivationPath, Fingerprint, Network, OriginKey, Policy, Psbt, Vault, signer_progress
from multisig.bip322 import is_proof
from multisig.proofs import policy_keys

OnProgress = Callable[[Progress], None]
# Answers a device's question; None if the person does it on the device, or gives up.
Ask = Callable[[Question], Awaitable[str | None]]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Conversation:
    """The calls of one operation to the device of `record`, which no other operation uses meanwhile."""

    network: Network
    deadlines: Deadlines
    roster: Roster
    registrations: Registrations
    record: DeviceRecord
    on_progress: OnProgress | None = None
    ask: Ask | None = None

    async def call(
        self,
        op: str,
        args: Arguments | None = None,
        *,
        deadline: float,
        person: float | None = None,
        listen: OnNote | None = None,
    ) -> Any:
        """One call of the operation. `deadline`, `person`: see `Lane.call`. `listen` is called with every
        note.

        :raises Cancelled: the operation was cancelled between two calls, or while it waited for the device.
        :raises Disconnected: the device left between two calls.
        """
        self.record.require_wanted()
        return await self.record.lane.call(
            op, args, deadline=deadline, person=person, on_note=self._on_note(listen), on_ask=self.ask
        )

    def tell(self, step: str, text: str) -> None:
        """Report progress to the caller."""
        if self.on_progress is not None:
            _tell(self.on_progress, Progress(self.record.device.id, step, text))

    async def read_fingerprint(self) -> Fingerprint:
        answer = await self.call("fingerprint", deadline=self.deadlines.read)
        return calls.fingerprint(answer)

    async def read_signer(self, policy: Policy, wanted: Fingerprint | None = None) -> Fingerprint:
        """Read the device's fingerprint again.

        :raises WrongDevice: not a signer of the policy, not the wanted one, or another than before (S18).
        """
        known = self.record.device.fingerprint
        fingerprint = await self.read_fingerprint()
        self.roster.identify(self.record, fingerprint)
        if known is not None and known != fingerprint:
            raise WrongDevice(f"This device was {known} before and is {fingerprint} now.")
        if wanted is not None and wanted != fingerprint:
            raise WrongDevice(f"This device is {fingerprint}, and {wanted} is to sign.")
        if policy.cosigner_for(fingerprint) is None:
            raise WrongDevice(f"This device ({fingerprint}) is not a signer here.")
        return fingerprint

    async def read_xpubs(self, paths: Sequence[DerivationPath]) -> tuple[OriginKey, ...]:
        request = Xpubs(tuple(map(str, paths)))
        answer = await self.call("xpubs", request, deadline=self.deadlines.reading(len(paths)))
        keys = calls.answer(Keys, answer)
        if len(keys.xpubs) != len(paths):
            raise DeviceFault(keys.otherwise)
        fingerprint = Fingerprint.from_hex(keys.fingerprint)
        self.roster.identify(self.record, fingerprint)
        pairs = zip(paths, keys.xpubs, strict=True)
        return tuple(calls.origin_key(fingerprint, path, text, self.network) for path, text in pairs)

    def registration(self, signer: Fingerprint, policy: Policy) -> Registration | None:
        if not isinstance(policy, Vault):
            return None
        return self.registrations.find(signer, policy.verification_code)

    async def ask_person(self, op: str, args: Arguments | None = None) -> Any:
        """A call with one short question to the person."""
        return await self.call(op, args, deadline=self.deadlines.work, person=self.deadlines.person)

    async def call_about(
        self,
        policy: Policy,
        signer: Fingerprint,
        op: str,
        args: Callable[[PolicyText], Arguments],
        *,
        deadline: float,
        person: float,
        listen: OnNote | None = None,
    ) -> Any:
        """A call that needs the device to know the policy.

        :raises NotEnrolled: it does not. A registration that the device no longer accepts is forgotten.
        """
        known = self.registration(signer, policy)
        try:
            about = args(calls.policy_text(policy, known))
            return await self.call(op, about, deadline=deadline, person=person, listen=listen)
        except NotEnrolled:
            if isinstance(policy, Vault):
                self.record.unknown_vaults.add((signer, policy.verification_code))
            if known is not None:
                with _unkept():
                    self.registrations.forget(known)
            raise

    def keep(self, registration: Registration) -> None:
        """Store a registration. A failure is logged: the person has approved it on the device already."""
        with _unkept():
            self.registrations.keep(registration)

    def _on_note(self, listen: OnNote | None) -> OnNote | None:
        on_progress = self.on_progress
        if on_progress is None:
            return listen
        device_id = self.record.device.id

        def pass_on(note: protocol.ProgressNote) -> None:
            if listen is not None:
                listen(note)
            _tell(on_progress, _progress(device_id, note))

        return pass_on


@contextlib.contextmanager
def _unkept() -> Iterator[None]:
    """Around the store of registrations: a failure costs one more approval later, and not this operation."""
    try:
        yield
    except OSError:
        _log.exception("the registrations could not be stored")


def _progress(device_id: str, note: protocol.ProgressNote) -> Progress:
    """A worker's note, fit for a screen (L8): one line, and a count only if it makes sense."""
    done, total = note.done, note.total
    if done is None or total is None or not 0 <= done <= total:
        done = total = None
    return Progress(device_id, clean_detail(note.step), clean_detail(note.text), done, total)


def _tell(on_progress: OnProgress, progress: Progress) -> None:
    try:
        on_progress(progress)
    except Exception:  # noqa: BLE001 - the caller's code: a bug there must not cost a signature that the person has approved
        _log.exception("a progress callback failed")


# Outcomes after which the device may still wait for the person, or hold the answer. A DeviceFault may come
# from another program that took over a Coldcard's session during the question.
_UNANSWERED: Final = (TimedOut, Cancelled, WorkerCrashed, Disconnected, DeviceFault, Busy)


@dataclass(frozen=True)
class _Signing:
    """One signing: the PSBT, its policy and signer, and the bytes that go to the device."""

    psbt: Psbt
    policy: Policy
    signer: Fingerprint
    content: bytes

    @property
    def digest(self) -> bytes:
        return hashlib.sha256(self.content).digest()


async def sign(talk: Conversation, psbt: Psbt, policy: Policy, wanted: Fingerprint | None) -> Psbt:
    """See `firmware_bridge.Bridge.sign`. The PSBT has been checked already."""
    device = talk.record.device
    if is_proof(psbt):
        # Before the person is asked.
        obstacle = why_no_proof(device.family, device.model, device.firmware, coins=len(psbt.inputs) - 1)
        if obstacle:
            raise Unsupported(f"This device signs no such message: {obstacle}.")
    if (why := why_not(MAKERS[device.family].limits_of(device.model), psbt, policy)) is not None:
        raise Unsupported(why)
    signer = await talk.read_signer(policy, wanted)
    if signer_progress(psbt, policy, signer).is_complete:
        return psbt
    signing = _Signing(psbt, policy, signer, sanitised_psbt.for_device(psbt, policy))
    answer = _earlier_answer(talk, signing) or await _fresh_answer(talk, signing)
    signed = sanitised_psbt.take_back(psbt, answer, policy, signer)
    _tell_missing(talk, signing, signed)
    return signed


def _earlier_answer(talk: Conversation, signing: _Signing) -> str | None:
    """What the same device answered to the same transaction, if it left before its fingerprint could be read
    again.

    The fingerprint has been read again by now.
    """
    answered, talk.record.answered = talk.record.answered, None
    if answered is None or (answered.digest, answered.signer) != (signing.digest, signing.signer):
        return None
    return answered.psbt


async def _fresh_answer(talk: Conversation, signing: _Signing) -> str:
    """:raises WrongDevice: the keys changed while the device signed (S18)."""
    answer = await _ask_person(talk, signing)
    try:
        signer = await talk.read_fingerprint()
    except Cancelled:
        raise
    except BridgeError:
        _remember(talk, signing, answer)
        raise
    if signer != signing.signer:
        raise WrongDevice("The device changed its keys while it signed; its signatures are not used.")
    return answer


def _remember(talk: Conversation, signing: _Signing, answer: str) -> None:
    """Keep an answer that verifies: the person should not have to approve twice because of a loose cable."""
    with contextlib.suppress(BadDeviceSignature, DeviceFault):
        if sanitised_psbt.take_back(signing.psbt, answer, signing.policy, signing.signer) != signing.psbt:
            talk.record.answered = DeviceAnswer(signing.digest, signing.signer, answer)


async def _ask_person(talk: Conversation, signing: _Signing) -> str:
    record, psbt = talk.record, signing.psbt
    content = base64.b64encode(signing.content).decode()
    payments = calls.count_payments(psbt, signing.policy)
    resume = record.unanswered == signing.digest

    def listen(note: protocol.ProgressNote) -> None:
        # From now on the device may ask about this transaction, and no longer about an earlier one.
        if note.step == TAKEN:
            record.unanswered = signing.digest

    deadlines, keys = talk.deadlines, len(policy_keys(signing.policy))
    work = MAKERS[record.device.family].pace.seconds(
        len(psbt.inputs), len(psbt.outputs), keys, len(signing.content)
    )
    try:
        answer = await talk.call_about(
            signing.policy,
            signing.signer,
            "sign",
            lambda known: Sign(content, known, payments, resume),
            deadline=deadlines.signing(work),
            person=deadlines.review(work),
            listen=listen,
        )
    except _UNANSWERED:
        raise
    except BridgeError:
        _forget_question(record, signing)
        raise
    _forget_question(record, signing)
    return str(answer)


def _forget_question(record: DeviceRecord, signing: _Signing) -> None:
    """Forget the question about this transaction, but not one about another."""
    if record.unanswered == signing.digest:
        record.unanswered = None


def _tell_missing(talk: Conversation, signing: _Signing, signed: Psbt) -> None:
    """Report the inputs that are left unsigned.

    :raises DeviceFault: the device reported success and signed nothing.
    """
    missing = signer_progress(signed, signing.policy, signing.signer).missing
    if not missing:
        return
    if signed == signing.psbt:
        raise DeviceFault("it returned no signature")
    inputs = ", ".join(str(index) for index in missing)
    talk.tell("incomplete", f"The device left these inputs unsigned: {inputs}.")
