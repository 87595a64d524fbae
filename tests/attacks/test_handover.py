"""The corpus at the last checks before a device, as if signerd had let everything through: refused again, or
stripped of its lies.
"""

import pytest

from firmware_bridge import sanitised_psbt
from multisig import MultisigError, Psbt, accept_signatures, signer_progress, verify_signatures
from multisig.errors import BadSignature, NotFinalisable, PsbtMismatch
from multisig.proofs import Prover
from signerd.core import engine
from signerd.core.events import ImportedAgain
from signerd.core.signing import imported_snapshot
from signerd.core.states import State
from signerd.core.values import Imported, Record, SignedPsbt
from signerd.daemon.imported import signed_of
from signerd.errors import SignerdError
from tests.attacks.cases import proposals, sound
from tests.attacks.people import ALICE, VAULT
from tests.attacks.recipes.devices import ANSWERS, COPIES
from tests.conformance.rigs import NETWORK

CLEAN = proposals(lambda p: p.handover == "clean")
REFUSED = proposals(lambda p: p.handover == "refused")


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


# --- what comes back (S19) ----------------------------------------------------------------------------------


def taken(answer) -> Psbt:
    given = answer.answer(answer.scene)
    signed = accept_signatures(answer.scene.honest, given, VAULT, ALICE.fingerprint)
    if signer_progress(signed, VAULT, ALICE.fingerprint).missing:
        raise NotFinalisable("an input is left unsigned")
    return signed


@pytest.mark.parametrize("answer", ANSWERS, ids=str)
def test_s19_only_sound_signatures_of_ours_are_taken(answer):
    base = answer.scene.honest
    if answer.outcome is None:
        signed = taken(answer)
        assert signed.without_signatures() == base
        assert signed != base
        return
    with pytest.raises(MultisigError) as caught:
        taken(answer)
    assert caught.value.code == answer.outcome


# --- what came with another copy (S33) ----------------------------------------------------------------------


def given_back(copy) -> Psbt:
    """What Alice gives back who signed the first copy and is given this one."""
    imported = imported_snapshot(
        "i-1",
        copy.scene.honest.to_bytes(),
        Imported("you", None, 0),
        [sound().review_context().pin],
        (),
        NETWORK,
    )
    signed = Record(
        imported, State.HANDED_OVER, "", signature=SignedPsbt(ALICE.sign(copy.scene.honest).to_bytes(), "key")
    )
    step = engine.decide(signed, ImportedAgain(copy.copy(copy.scene).to_bytes()), sound().review_context())
    assert step.record.state is State.HANDED_OVER
    return signed_of(step.record)


def has_all(copy, given: Psbt) -> bool:
    came = (copy.copy(copy.scene).inputs, ALICE.sign(copy.scene.honest).inputs)
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
