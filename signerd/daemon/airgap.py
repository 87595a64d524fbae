"""Exporting approved proposals for devices without a cable, and importing their answers.

An exported PSBT may be signed from then on. So the export is recorded first, and counts as signed in the
ledger and the limits, whether or not an answer is imported.
"""

from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

from custody.common.text import said
from firmware_bridge import BadDeviceSignature, BridgeError
from firmware_bridge.airgap import file_of, request_bytes, take_signed
from firmware_bridge.airgap.card import request_name
from firmware_bridge.airgap.handoff import decode_psbt
from firmware_bridge.makers import signing_devices
from multisig import MultisigError, Psbt, ReceivedPsbt
from multisig.bip322 import is_proof
from signerd.callers import LoopbackCaller
from signerd.core import events
from signerd.core.audit import Note
from signerd.core.signing import signing_of
from signerd.core.states import State
from signerd.core.tokens import ModelScreen
from signerd.core.values import Record
from signerd.daemon.imported import decoded_psbt, written_as
from signerd.daemon.service import Daemon
from signerd.errors import (
    AnswerRefused,
    DecisionError,
    IllegalEvent,
    NotExported,
    RefusedByChecks,
    StaleApproval,
)
from signerd.shapes import ExportedPsbt, ProposalLine, PsbtVersion

# A restored journal does not know exports after the backup: the proposal is checked and approved again.
FORGOTTEN = (
    "This machine's memory was restored from a backup. If you exported it after that backup: approve it and "
    "export it again (`signerd export ID`), then import this very file. It need not be signed again."
)
AT_DEVICE = (
    "Sign it there. Or cancel it on the device, unplug the device, approve the proposal again and export it."
)
# A name for the file, where the vault has none.
PROFILE_LABEL = "profile"


async def export(
    daemon: Daemon, psbt_id: str, by: LoopbackCaller, version: PsbtVersion = "0"
) -> ExportedPsbt:
    """The approved proposal's PSBT; the same bytes again where it was exported before.

    Raises:
        UnknownProposal, IllegalEvent, RefusedByChecks, NeedsAcknowledgement: nothing was exported.
        StaleApproval: it changed since it was approved, and the person is asked again.
    """
    await daemon.runner.checked.wait()
    record = daemon.journal.record(psbt_id)
    if record.state is State.SIGNING:
        raise IllegalEvent("your device on its cable is asked to sign it already", hint=AT_DEVICE)
    # Before the export is recorded: the request may be one that no device accepts.
    request = _request_of(daemon, record)
    event = events.Exported(by.audit_name, sha256(request).hexdigest())
    record = daemon.runner.decide(psbt_id, event).record
    if record.state is not State.EXPORTED or record.exported is None:
        raise StaleApproval("the proposal changed after you approved it")
    pin = daemon.journal.pin_of(record.snapshot)
    return ExportedPsbt(
        psbt_id=psbt_id,
        network=str(daemon.journal.network),
        file_name=request_name(PROFILE_LABEL if pin is None else pin.name, Psbt.parse(record.exported)),
        psbt=written_as(version, Psbt.parse(request)),
    )


async def answer(daemon: Daemon, psbt: str, by: LoopbackCaller) -> ProposalLine:
    """Import a device's answer, a PSBT in base64. Its transaction identifies the proposal.

    Raises: InvalidRequest, AnswerRefused, NotExported: nothing has changed. IllegalEvent: it was
    declined, or has ended. StaleApproval, RefusedByChecks, NeedsAcknowledgement: the approval is no
    longer valid; it is still exported.
    """
    raw, identity = _read(psbt)
    refusal: DecisionError | None = None
    for record in _exported(daemon, identity):
        if record.signature is not None:
            # Already imported.
            return daemon.line(record)
        try:
            _verify(daemon, record, raw)
            return daemon.line(
                daemon.runner.decide(record.psbt_id, events.AnswerImported(raw, by.audit_name)).record
            )
        except DecisionError as error:
            refusal = error
    assert refusal is not None, "there is at least one"
    raise refusal


def _request_of(daemon: Daemon, record: Record) -> bytes:
    """The bytes of the export; empty where the engine will refuse it. Raises RefusedByChecks."""
    context = daemon.journal.review_context(record.snapshot)
    signing = signing_of(record.snapshot, context)
    if signing is None or record.state not in (State.WAITING_DEVICE, State.EXPORTED):
        # The engine raises the error.
        return b""
    psbt = Psbt.parse(record.exported or record.snapshot.psbt)
    if is_proof(psbt):
        _require_able(context.screen, coins=len(psbt.inputs) - 1)
    try:
        return request_bytes(psbt, signing.policy)
    except MultisigError as error:
        raise RefusedByChecks(f"it cannot be given to a device: {said(error)}") from error


def _read(psbt: str) -> tuple[bytes, str]:
    with refusing():
        raw = decode_psbt(decoded_psbt(psbt))
    try:
        answer = ReceivedPsbt.parse(raw).psbt
    except MultisigError as error:
        raise AnswerRefused(f"this PSBT cannot be read: {said(error)}") from error
    return answer.to_bytes(), answer.tx.txid


def _exported(daemon: Daemon, identity: str) -> list[Record]:
    """The proposals of this transaction that wait for an answer, or else the signed ones; never empty.

    Several, because the first may no longer accept one. Raises NotExported, IllegalEvent.
    """
    exports = daemon.journal.exports_of(identity)
    waiting = [record for record in exports if record.state is State.EXPORTED]
    signed = [record for record in exports if record.signature is not None]
    if waiting or signed:
        return waiting or signed
    if not exports:
        raise NotExported(
            "this transaction was not exported here, so its answer cannot be imported",
            hint=None if daemon.journal.restored is None else FORGOTTEN,
        )
    record = exports[-1]
    raise IllegalEvent(
        f"the proposal {record.psbt_id} has ended: its answer is refused",
        hint="It counts as signed here all the same: anyone who has the file can still send it.",
    )


def _verify(daemon: Daemon, record: Record, raw: bytes) -> None:
    """Verify the answer as one over a cable; the engine verifies it again.

    A signature that does not verify is not a person's mistake: it is reported and recorded.
    """
    signing = signing_of(record.snapshot, daemon.journal.review_context(record.snapshot))
    if signing is None or record.exported is None:
        return
    exported, signer = Psbt.parse(record.exported), signing.key.origin.fingerprint
    with refusing():
        try:
            take_signed(raw, exported, signing.policy, signer)
        except BadDeviceSignature as error:
            why = said(error)
            sentence = f"The answer that was imported was not used: {why}"
            daemon.journal.note(Note("answer-refused", record.psbt_id, {"why": why}))
            daemon.runner.feed.add(record.psbt_id, "alarm", sentence)
            raise


def carried_psbt(carried: bytes) -> str:
    """The PSBT of an import, in base64: from a file in any form, or from the texts of QR codes, one on each
    line.

    Raises AnswerRefused.
    """
    with refusing():
        return b64encode(decode_psbt(file_of(carried))).decode("ascii")


def _require_able(screen: ModelScreen | None, *, coins: int) -> None:
    """Check that the device can sign messages. One without a cable is known only if it was connected before.

    Raises RefusedByChecks.
    """
    if screen is None:
        raise RefusedByChecks(
            "it is a message, and it is not known whether your device signs messages",
            hint="Connect the device by its cable once, so that its model and firmware are known. "
            f"These sign: {signing_devices(coins=coins)}.",
        )
    why = screen.why_no_message(coins)
    if why:
        raise RefusedByChecks(f"your device ({screen.name}) signs no such message: {why}")


@contextmanager
def refusing() -> Iterator[None]:
    """The library's errors as AnswerRefused."""
    try:
        yield
    except BridgeError as error:
        raise AnswerRefused(said(error), hint=error.hint or None) from error
