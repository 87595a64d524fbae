"""The corpus at the last checks before a device, as if signerd had let everything through: refused again, or
stripped of its lies.
"""

import pytest

from firmware_bridge import sanitised_psbt
from multisig import MultisigError, Psbt, accept_signatures, signer_progress, verify_signatures
from multisig.errors import BadSignature, NotFinalisable, PsbtMismatch
from multisig.proofs import Prover
from signerd.core import engine
from signerd.core.engine import device_returned
from signerd.core.events import DeviceReturned, ImportedAgain
from signerd.core.signing import imported_snapshot
from signerd.core.states import State
from signerd.core.values import Approval, Imported, Record, SignedPsbt
from signerd.daemon.imported import signed_of
from signerd.errors import SignerdError
from tests.attacks.cases import entries, proposals, snapshot, sound
from tests.attacks.guards import switch_off
from tests.attacks.people import ALICE, VAULT
from tests.conformance.rigs import NETWORK

CLEAN = proposals(lambda p: p.handover == "clean")
REFUSED = proposals(lambda p: p.handover == "refused")
ANSWERS = entries("answers")
COPIES = entries("copies")
BAD_ANSWERS = tuple(answer for answer in ANSWERS if answer.outcome)


def handed_over(psbt: Psbt, policy) -> Psbt:
    """What the device would be given."""
    sanitised_psbt.require_sound(psbt, policy)
    return Psbt.parse(sanitised_psbt.for_device(psbt, policy))


@pytest.mark.parametrize("proposal", CLEAN, ids=str)
def test_what_a_device_is_given_says_nothing_but_the_truth(proposal):
    policy = proposal.policy
    given = handed_over(proposal.parsed, policy)
    assert given.tx == proposal.parsed.tx
    prover = Prover(policy)
    for item in given.inputs:
        ours = prover.prove(item.witness_utxo.script_pubkey, item.derivations)
        assert (item.witness_script, item.derivations) == (ours.witness_script, ours.derivations)
        assert item.sighash_type is None
        assert item.redeem_script is None
        assert item.witness_utxo == item.non_witness_utxo.outputs[item.outpoint.vout]
    for output in given.outputs:
        assert output.redeem_script is None
        ours = prover.prove(output.script_pubkey, output.derivations)
        claimed = (output.witness_script, dict(output.derivations))
        assert claimed == ((None, {}) if ours is None else (ours.witness_script, ours.derivations))


@pytest.mark.parametrize("proposal", REFUSED, ids=str)
def test_what_is_not_proven_goes_to_no_device(proposal):
    with pytest.raises(MultisigError) as caught:
        handed_over(proposal.parsed, proposal.policy)
    assert isinstance(caught.value, PsbtMismatch | BadSignature)


@pytest.mark.parametrize("proposal", REFUSED, ids=str)
def test_without_the_checks_it_would_go(proposal, monkeypatch):
    """That the test above would notice."""
    monkeypatch.setattr(sanitised_psbt, "require_sound", lambda _psbt, _policy: None)
    monkeypatch.setattr(sanitised_psbt, "for_device", lambda psbt, _policy: psbt.to_bytes())
    assert handed_over(proposal.parsed, proposal.policy) == proposal.parsed


def test_s1_without_the_checks_a_device_would_be_told_the_lie(monkeypatch):
    lies = [p for p in CLEAN if "fake-change" in p.codes]
    told = [handed_over(lie.parsed, lie.policy).outputs for lie in lies]
    monkeypatch.setattr(sanitised_psbt, "for_device", lambda psbt, _policy: psbt.to_bytes())
    for lie, truth in zip(lies, told, strict=True):
        assert handed_over(lie.parsed, lie.policy).outputs == lie.parsed.outputs != truth


# --- what comes back (S19) ----------------------------------------------------------------------------------


def taken(answer) -> Psbt:
    base = Psbt.parse(answer.bytes("psbt"))
    signed = accept_signatures(base, Psbt.parse(answer.bytes("answer")), VAULT, ALICE.fingerprint)
    if signer_progress(signed, VAULT, ALICE.fingerprint).missing:
        raise NotFinalisable("an input is left unsigned")
    return signed


@pytest.mark.parametrize("answer", ANSWERS, ids=str)
def test_s19_only_sound_signatures_of_ours_are_taken(answer):
    base = Psbt.parse(answer.bytes("psbt"))
    if answer.outcome is None:
        signed = taken(answer)
        assert signed.without_signatures() == base
        assert signed != base
        return
    with pytest.raises(MultisigError) as caught:
        taken(answer)
    assert caught.value.code == answer.outcome


def at_the_device(answer) -> Record:
    shown = snapshot("p-1", answer.bytes("psbt"), answer.platform)
    return Record(shown, State.SIGNING, shown.txid_expected, Approval("00" * 32))


@pytest.mark.parametrize("answer", ANSWERS, ids=str)
def test_s19_nothing_else_of_it_becomes_the_daemons(answer):
    step = device_returned(
        at_the_device(answer), DeviceReturned(answer.bytes("answer")), sound().review_context()
    )
    if answer.outcome is None:
        assert step.record.state is State.SIGNED
        assert Psbt.parse(step.record.signature.psbt).without_signatures() == Psbt.parse(answer.bytes("psbt"))
    else:
        assert step.record.state is State.INTERRUPTED
        assert step.record.signature is None
        assert step.record.approval is None


@pytest.mark.parametrize("answer", BAD_ANSWERS, ids=str)
def test_s19_without_the_guard_the_device_s_word_would_be_kept(answer, monkeypatch):
    monkeypatch.setattr("signerd.core.engine._verified", lambda _record, returned, *_rest: returned)
    step = device_returned(
        at_the_device(answer), DeviceReturned(answer.bytes("answer")), sound().review_context()
    )
    assert step.record.signature.psbt == answer.bytes("answer")


# --- what came with another copy (S33) ----------------------------------------------------------------------


def given_back(copy) -> Psbt:
    """What Alice gives back who signed the first copy and is given this one."""
    imported = imported_snapshot(
        "i-1", copy.bytes("psbt"), Imported("you", None, 0), [sound().review_context().pin], (), NETWORK
    )
    signed = Record(imported, State.HANDED_OVER, "", signature=SignedPsbt(copy.bytes("signed"), "key"))
    step = engine.decide(signed, ImportedAgain(copy.bytes("copy")), sound().review_context())
    assert step.record.state is State.HANDED_OVER
    return signed_of(step.record)


def has_all(copy, given: Psbt) -> bool:
    came = (Psbt.parse(copy.bytes("copy")).inputs, Psbt.parse(copy.bytes("signed")).inputs)
    return all(
        item.partial_signatures.items() <= ours.partial_signatures.items()
        for inputs in came
        for item, ours in zip(inputs, given.inputs, strict=True)
    )


@pytest.mark.parametrize("copy", COPIES, ids=str)
def test_s33_what_came_is_given_back_with_our_own_or_refused(copy):
    if copy.outcome is None:
        given = given_back(copy)
        assert has_all(copy, given)
        assert verify_signatures(given, VAULT).progress == 2
        return
    with pytest.raises(SignerdError) as caught:
        given_back(copy)
    assert caught.value.code == copy.outcome


@pytest.mark.parametrize("copy", COPIES, ids=str)
def test_s33_without_the_guard_it_would_be_dropped_in_silence(copy, monkeypatch):
    switch_off(monkeypatch, copy.off)
    assert not has_all(copy, given_back(copy))
