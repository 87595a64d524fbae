"""Asking the device, and what comes back from it."""

import hashlib
from dataclasses import replace
from typing import Any

from multisig import MultisigError, NotFinalisable, Psbt, accept_signatures, inspect, signer_progress
from signerd.core import events
from signerd.core.audit import Note
from signerd.core.effects import Level, Notify, SignOnDevice
from signerd.core.following import ended, reconsidered
from signerd.core.imported import handed_over
from signerd.core.person import require_assent
from signerd.core.places import NEW_POLICY, policy_code, used_by
from signerd.core.review import review
from signerd.core.signing import Signing, signing_of
from signerd.core.states import Move, advance
from signerd.core.step import Step, due_effects, go_on, request_key
from signerd.core.text import said
from signerd.core.values import Record, ReviewContext, Signature
from signerd.errors import NeedsAcknowledgement, RefusedByChecks, StaleApproval


def device_found(record: Record, event: events.DeviceFound, around: ReviewContext) -> Step:
    """The last look before the device is asked: the approval must still be to what would be shown now."""
    state = advance(record.state, Move.ASK_DEVICE)
    found, signing = review(record.snapshot, around), signing_of(record.snapshot, around)
    if record.approval is None or record.signature is not None or signing is None:
        return _asked_again(record, around)
    try:
        require_assent(found, record.approval)
    except (StaleApproval, RefusedByChecks, NeedsAcknowledgement):
        return _asked_again(record, around)
    at_device, fingerprint = replace(record, state=state), signing.key.origin.fingerprint
    effect = SignOnDevice(record.psbt_id, record.snapshot.psbt, signing.policy, fingerprint, event.device)
    facts = {"device": event.device, "digest": record.approval.digest, "fingerprint": str(fingerprint)}
    return Step(at_device, (effect,), (Note("device-asked", record.psbt_id, facts),))


def _asked_again(record: Record, around: ReviewContext) -> Step:
    sentence = "The proposal changed after you approved it: look at it again."
    note = Note("approval-lapsed", record.psbt_id)
    again = reconsidered(record, events.Reconsidered(), around)
    told = Notify(record.psbt_id, Level.ATTENTION, sentence)
    return Step(again.record, (*again.effects, told), (note, *again.notes))


def device_returned(record: Record, event: events.DeviceReturned, around: ReviewContext) -> Step:
    """S19: only signatures are taken from what came back, each is verified, and every input must have ours."""
    verifying = replace(record, state=advance(record.state, Move.DEVICE_RETURNED))
    signing = signing_of(record.snapshot, around)
    if signing is None or (around.pin is None and not record.snapshot.is_of_profile):
        return _verify_failed(verifying, "the vault is no longer pinned.")
    try:
        signed = _with_verified_signatures(record, event.psbt, signing)
    except MultisigError as error:
        return _verify_failed(verifying, said(error))
    signature = Signature(signed, request_key("submit", record.psbt_id, signed))
    stored = replace(verifying, state=advance(verifying.state, Move.VERIFIED), signature=signature, reason="")
    facts = {
        "idempotency_key": signature.idempotency_key,
        "psbt_sha256": hashlib.sha256(signed).hexdigest(),
        **_places(record, signing, around),
    }
    step = Step(stored, due_effects(stored, around), (Note("signed", record.psbt_id, facts),))
    return go_on(step, lambda r: handed_over(r) or ended(r))


def _with_verified_signatures(record: Record, returned: bytes, signing: Signing) -> bytes:
    policy, fingerprint = signing.policy, signing.key.origin.fingerprint
    base = Psbt.parse(record.snapshot.psbt)
    signed = accept_signatures(base, Psbt.parse(returned), policy, fingerprint)
    missing = signer_progress(signed, policy, fingerprint).missing
    if missing:
        raise NotFinalisable(f"the device left inputs unsigned: {', '.join(map(str, missing))}")
    return signed.to_bytes()


def _places(record: Record, signing: Signing, around: ReviewContext) -> dict[str, Any]:
    """S29: the addresses that are known to be used from now on."""
    code = policy_code(signing.policy)
    inspection = inspect(Psbt.parse(record.snapshot.psbt), signing.policy, network=around.network)
    return {"places": used_by(inspection, around.places.get(code, NEW_POLICY)), "policy": code}


def _verify_failed(verifying: Record, why: str) -> Step:
    reason = f"What the device returned was not used: {why}"
    failed = replace(
        verifying, state=advance(verifying.state, Move.VERIFY_FAILED), approval=None, reason=reason
    )
    told = Notify(verifying.psbt_id, Level.ALARM, reason)
    step = Step(failed, (told,), (Note("verify-failed", verifying.psbt_id, {"why": why}),))
    return go_on(step, ended)


def device_failed(record: Record, event: events.DeviceFailed, _around: ReviewContext) -> Step:
    facts = {"asked": event.asked, "code": event.code, "sentence": event.sentence}
    if not event.asked:
        waiting = replace(record, state=advance(record.state, Move.DEVICE_NOT_READY), reason=event.sentence)
        return go_on(Step(waiting, notes=(Note("device-not-ready", record.psbt_id, facts),)), ended)
    interrupted = replace(
        record, state=advance(record.state, Move.DEVICE_FAILED), approval=None, reason=event.sentence
    )
    told = Notify(record.psbt_id, Level.ATTENTION, event.sentence)
    return go_on(Step(interrupted, (told,), (Note("interrupted", record.psbt_id, facts),)), ended)
