"""The corpus at the last checks before a device, as if signerd had let everything through: refused again, or
stripped of its lies.
"""

import pytest

from firmware_bridge import sanitised_psbt
from multisig import MultisigError, Psbt
from multisig.errors import BadSignature, PsbtMismatch
from multisig.proofs import Prover
from tests.attacks.cases import proposals

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
