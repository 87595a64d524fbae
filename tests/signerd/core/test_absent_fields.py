"""PSBTs as other programs write them: whatever of a PSBT may be absent (BIP-174) is drawn away, each field of
each map for itself.

What is absent is no false claim: it is derived here, or it is said to be missing. A field that contradicts
what is proven refuses, whatever else is there. Amounts and fees are those of embit and bdk.
"""

from collections.abc import Mapping
from dataclasses import replace

import bdkpython
import pytest
from embit.psbt import PSBT as EmbitPsbt  # noqa: N811 - a class named like a constant
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_bridge.sanitised_psbt import for_device, require_sound
from multisig import Fingerprint, Policy, Psbt, PsbtInput, inspect
from signerd.core.checks.case import Outcome
from signerd.core.review import ProposalReview, review
from signerd.core.signing import imported_snapshot
from signerd.core.values import Imported
from tests.support.desk import NETWORK, PROFILE, PROFILE_KEY, VAULT, make_pin, own_keys, review_context
from tests.support.examples import examples
from tests.support.wallets import make_spend

PAYMENT, BACK = 0, 1
POLICIES: tuple[Policy, ...] = (VAULT, PROFILE)
OWN_KEYS = (*own_keys(), PROFILE_KEY)
# What is said where something that is needed is not there.
MISSING = {"previous-transaction-missing", "origins-missing"}
OF_THE_FEE = ("fee-total", "fee-rate", "fee-share")


@st.composite
def subsets(draw, policy: Policy, *, most_inputs: int = 3) -> tuple[Psbt, Psbt]:
    """An honest PSBT, and the same with fields absent."""
    whole = make_spend(policy, n_inputs=draw(st.integers(1, most_inputs)))
    inputs = tuple(_some_of_input(draw, item) for item in whole.inputs)
    outputs = tuple(_some_of(draw, output) for output in whole.outputs)
    xpubs = tuple(
        (replace(xpub, parent_fingerprint=Fingerprint(bytes(4))) if draw(st.booleans()) else xpub, origin)
        for xpub, origin in whole.xpubs
        if draw(st.booleans())
    )
    some = replace(whole, inputs=inputs, outputs=outputs, xpubs=xpubs)
    return whole, Psbt.parse(some.to_bytes())


def _some_of_input(draw, item: PsbtInput) -> PsbtInput:
    kept = _some_of(draw, item)
    coin, previous = draw(st.sampled_from([(True, True), (False, True), (False, True), (True, False)]))
    return replace(
        kept,
        witness_utxo=item.witness_utxo if coin else None,
        non_witness_utxo=item.non_witness_utxo if previous else None,
        sighash_type=draw(st.sampled_from([None, 1])),
    )


def _some_of(draw, item):
    origins = {key: origin for key, origin in item.derivations.items() if draw(st.integers(0, 3))}
    return replace(
        item, witness_script=draw(st.sampled_from([None, item.witness_script])), derivations=origins
    )


def judged(psbt: Psbt) -> ProposalReview:
    """As one that a program imports: which of our policies it is of, its claims alone say."""
    imported = Imported("Wallet", None, 0)
    snapshot = imported_snapshot("i-1", psbt.to_bytes(), imported, [make_pin()], OWN_KEYS, NETWORK)
    pin = None if snapshot.is_of_profile else make_pin()
    return review(snapshot, review_context(pin=pin, own_keys=OWN_KEYS))


def outcomes(found: ProposalReview) -> Mapping[str, Outcome]:
    return {verdict.name: verdict.outcome for verdict in found.verdicts}


def is_enough(item: PsbtInput) -> bool:
    return item.non_witness_utxo is not None and bool(item.derivations)


@pytest.mark.parametrize("policy", POLICIES, ids=["vault", "profile"])
@settings(max_examples=examples(150))
@given(data=st.data())
def test_what_is_absent_is_missing_or_is_not_needed(policy, data):
    whole, psbt = data.draw(subsets(policy))
    full, seen = (inspect(each, policy, network=NETWORK) for each in (whole, psbt))
    assert (full.ok, full.findings) == (True, ())
    assert {finding.code for finding in seen.findings} <= MISSING
    assert seen.ok is all(map(is_enough, psbt.inputs))
    back = psbt.outputs[BACK]
    assert seen.change == (full.change if back.derivations else ())
    if seen.ok:
        assert (seen.inputs, seen.total_in, seen.fee) == (full.inputs, full.total_in, full.fee)
        require_sound(psbt, policy)
    if seen.ok and back.derivations:
        assert for_device(psbt, policy) == for_device(whole, policy)
        found = judged(psbt)
        assert found.allowed
        assert (outcomes(found), found.inspection.digest) == (outcomes(judged(whole)), full.digest)


@pytest.mark.parametrize("policy", POLICIES, ids=["vault", "profile"])
@settings(max_examples=examples(150))
@given(data=st.data())
def test_s32_a_figure_is_that_of_other_readers_or_is_not_known(policy, data):
    """It rests on proven amounts alone: what the coins only state counts for nothing."""
    _whole, psbt = data.draw(subsets(policy))
    seen = inspect(psbt, policy, network=NETWORK)
    proven = [item.non_witness_utxo is not None for item in psbt.inputs]
    assert [coin.amount is not None for coin in seen.inputs] == proven
    found = judged(psbt)
    if all(proven):
        theirs = EmbitPsbt.parse(psbt.to_bytes())
        assert [c.amount for c in seen.inputs] == [
            item.non_witness_utxo.vout[item.vout].value for item in theirs.inputs
        ]
        assert seen.fee == theirs.fee() == bdkpython.Psbt(psbt.to_base64()).fee()
        return
    assert (seen.total_in, seen.fee, seen.fee_rate) == (None, None, None)
    assert not found.allowed
    # Nothing is inspected where no claim tells whose coins they are.
    told = outcomes(found)
    assert found.inspection is None or {told[name] for name in OF_THE_FEE} == {Outcome.REFUSE}
