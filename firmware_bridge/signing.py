"""One signature of a transaction: sound on its way to the device, believed on its way back only as far as it verifies."""

import base64
import contextlib
import hashlib
from dataclasses import dataclass
from typing import Final

from firmware_bridge import arguments, protocol, sanitised_psbt
from firmware_bridge.conversation import Conversation
from firmware_bridge.errors import (
    BadDeviceSignature,
    BridgeError,
    Busy,
    Cancelled,
    DeviceFault,
    Disconnected,
    TimedOut,
    WorkerCrashed,
    WrongDevice,
)
from firmware_bridge.port import TAKEN
from firmware_bridge.record import Answered, Record
from multisig import Fingerprint, Policy, Psbt, signer_progress

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
        "payments": arguments.payments(psbt, errand.policy),
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
