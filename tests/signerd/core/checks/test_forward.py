"""A forward: only coins that are proven the profile's, only into the pinned vault; the rest of it comes back (S12)."""

from dataclasses import replace

import pytest

from custody.schemas.proposals import TxType
from multisig import CHANGE, RECEIVE, Psbt, TxOut, op_return_script, sats
from signerd.core.checks.case import Outcome
from signerd.core.checks.payments import RECEIVE_ADDRESSES
from signerd.core.review import Review, review
from signerd.core.rules.reading import read_rules
from signerd.core.signing import signing_of
from signerd.core.states import State
from signerd.core.values import Limits, ReviewContext
from tests.support.desk import NETWORK, VAULT, make_pin, review_context, snapshot_of
from tests.support.payments import (
    PROFILE,
    forward_of,
    forward_psbt,
    neighbour_of,
    profile_key,
    spend_of,
    with_profile,
)
from tests.support.wallets import (
    ALICE,
    BOB,
    MALLORY,
    make_vault,
    pay,
    with_input,
    with_inputs,
    with_output,
)

AROUND = with_profile()
HONEST = forward_of(forward_psbt())


def refused_by(psbt: Psbt, around: ReviewContext = AROUND, **says: object) -> set[str]:
    found = review(forward_of(psbt, **says), around)
    assert not found.allowed
    return {verdict.name for verdict in found.refusals}


def told(found: Review, name: str) -> str:
    (one,) = [verdict for verdict in found.verdicts if verdict.name == name]
    return one.sentence


@pytest.mark.parametrize("psbt", [forward_psbt(), forward_psbt(None), forward_psbt(None, coins=(1, 2, 3))])
def test_an_honest_forward_is_allowed_by_every_check(psbt: Psbt) -> None:
    found = review(forward_of(psbt), AROUND)
    assert {verdict.outcome for verdict in found.verdicts} == {Outcome.ALLOW}
    assert not found.to_acknowledge
    assert "from your own profile" in told(found, "forward-profile")
    assert "into the pinned vault, to its address 0" in told(found, "forward-destination")
    assert "your own profile's" in told(found, "transaction")


def test_what_is_left_of_a_fixed_amount_goes_back_to_the_profile_only() -> None:
    found = review(HONEST, AROUND)
    assert found.inspection is not None
    assert [change.amount for change in found.inspection.change] == [39_000]
    to_bob = forward_psbt(None, extra=(TxOut(sats(39_000), BOB.profile(NETWORK).script_pubkey(CHANGE, 3)),))
    assert refused_by(to_bob) == {"forward-destination"}


def test_s12_every_receive_address_that_a_wallet_would_find_is_the_vaults_and_nothing_else() -> None:
    for index in (0, 1, RECEIVE_ADDRESSES - 1):
        assert review(forward_of(forward_psbt(to=VAULT.script_pubkey(RECEIVE, index))), AROUND).allowed
    for script in (
        VAULT.script_pubkey(RECEIVE, RECEIVE_ADDRESSES),
        VAULT.script_pubkey(CHANGE, 0),
        make_vault(account=1).script_pubkey(RECEIVE, 0),
        make_vault(threshold=1).script_pubkey(RECEIVE, 0),
        pay(1, "thief").script_pubkey,
    ):
        assert refused_by(forward_psbt(to=script)) == {"forward-destination"}


def test_s12_a_second_payment_a_payment_to_nobody_and_data_are_refused() -> None:
    vault = VAULT.script_pubkey(RECEIVE, 1)
    for extra in (pay(1_000, "thief"), TxOut(sats(1_000), vault)):
        assert refused_by(forward_psbt(extra=(extra,))) == {"forward-destination"}
    data = TxOut(sats(0), op_return_script(b"hello"))
    assert refused_by(forward_psbt(extra=(data,))) == {"forward-destination"}
    back = forward_psbt(to=PROFILE.script_pubkey(RECEIVE, 0))
    assert "forward-destination" in refused_by(back)


@pytest.mark.parametrize("keys", [(), (profile_key(MALLORY),), review_context().own_keys])
def test_s15_a_forward_from_no_registered_profile_is_refused(keys: tuple[object, ...]) -> None:
    assert "forward-profile" in refused_by(forward_psbt(), with_profile(own_keys=keys))


def test_s15_somebody_elses_forward_is_not_ours_to_sign() -> None:
    profile = BOB.profile(NETWORK)
    found = review(forward_of(forward_psbt(profile=profile), profile=profile), AROUND)
    assert [verdict.name for verdict in found.refusals] == ["forward-profile"]


def test_s3_coins_of_another_wallet_among_the_profiles_are_refused() -> None:
    ours, theirs = forward_psbt(coins=(1,)), forward_psbt(coins=(2,), profile=BOB.profile(NETWORK))
    mixed = with_inputs(ours, *ours.inputs, *theirs.inputs)
    assert {"transaction", "input-not-ours"} <= refused_by(mixed)


def test_s3_the_vaults_own_coins_are_no_profiles() -> None:
    psbt = spend_of((1,), ())
    assert refused_by(psbt) == {"forward-profile"}
    assert "input-not-ours" in {v.name for v in review(replace(HONEST, kind=TxType.SEND), AROUND).refusals}


def test_s4_s5_s8_the_amounts_are_proven_and_all_is_signed() -> None:
    psbt = forward_psbt()
    assert "previous-transaction-missing" in refused_by(with_input(psbt, 0, non_witness_utxo=None))
    wrong = TxOut(sats(1), PROFILE.script_pubkey(RECEIVE, 0))
    assert "amount-mismatch" in refused_by(with_input(psbt, 0, witness_utxo=wrong))
    assert "sighash-not-all" in refused_by(with_input(psbt, 0, sighash_type=0x81))


def test_s1_change_that_only_says_that_it_is_the_profiles_is_refused() -> None:
    stolen = with_output(forward_psbt(), 1, script_pubkey=pay(1, "thief").script_pubkey)
    assert {"fake-change", "forward-destination"} <= refused_by(stolen)


def test_s9_an_absurd_index_of_the_profile_is_refused() -> None:
    psbt = forward_psbt()
    item = psbt.inputs[0]
    origins = {
        key: replace(origin, path=type(origin.path)((*origin.path.indexes[:-1], 2_000_000)))
        for key, origin in item.derivations.items()
    }
    assert "absurd-path" in refused_by(with_input(psbt, 0, derivations=origins))


def test_s16_s14_the_vault_must_be_pinned_unchanged_and_on_this_network() -> None:
    assert "vault-pinned" in refused_by(forward_psbt(), with_profile(pin=None))
    assert "vault-unchanged" in refused_by(forward_psbt(), with_profile(claimed_descriptor=None))
    assert "network" in refused_by(forward_psbt(), workspace_network="mainnet")
    other = with_profile(pin=make_pin(make_vault((ALICE, BOB, MALLORY))))
    assert "vault-unchanged" in refused_by(forward_psbt(), other)


@pytest.mark.parametrize(
    ("lie", "check"),
    [
        ({"recipients": (VAULT.address(RECEIVE, 1),)}, "recipients"),
        ({"amounts": (60_001,)}, "amounts"),
        ({"fee": 999}, "fee-recorded"),
        ({"op_return": "hello"}, "data"),
        ({"txid_expected": "00" * 32}, "transaction-id"),
    ],
)
def test_s12_a_forward_that_differs_from_its_record_is_refused(lie: dict[str, object], check: str) -> None:
    assert check in refused_by(forward_psbt(), **lie)


def test_s7_the_fee_is_bounded_as_everywhere() -> None:
    assert "fee-share" in refused_by(forward_psbt(fee=20_000))
    tight = with_profile(limits=replace(Limits(), max_fee=sats(999)))
    assert refused_by(forward_psbt(), tight) == {"fee-total"}


def test_s6_a_second_forward_of_the_same_amount_is_held_and_a_bump_of_it_is_not() -> None:
    first = neighbour_of(HONEST, State.SUBMITTED)
    again = forward_of(forward_psbt(coins=(2,)), "f-2")
    assert review(again, replace(AROUND, neighbours=(first,))).to_acknowledge == {"paid-twice"}
    bump = forward_of(forward_psbt(fee=2_000), "f-2", replaces="f-1")
    assert review(bump, replace(AROUND, neighbours=(first,))).allowed
    assert not review(bump, replace(AROUND, neighbours=(first,))).to_acknowledge


def test_a_forward_is_nothing_that_the_vault_pays() -> None:
    """Its limits are those of money that leaves it; whom it pays is the vault. Hours and fees count as everywhere."""
    text = '[refuse]\nabove_per_transaction = "1 sat"\nabove_per_day = "1 sat"\nexcept_to = ["{}"]\n[ask]\nabove_fee_rate = "1 sat/vB"\n'
    rules = read_rules(text.format(VAULT.address(CHANGE, 0)), NETWORK)
    found = review(HONEST, replace(AROUND, rules=rules))
    assert not {v.name for v in found.refusals} & {"rule-refuse-per-transaction", "rule-refuse-address"}
    assert "rule-ask-fee-rate" in found.to_acknowledge


def test_the_profile_signs_with_its_own_key() -> None:
    signing = signing_of(HONEST, AROUND)
    assert signing is not None
    assert (signing.policy, signing.key) == (PROFILE, profile_key().key)
    assert signing_of(replace(HONEST, psbt=b"garbage"), AROUND) is None
    of_vault = signing_of(snapshot_of(spend_of((1,), ())), AROUND)
    assert of_vault is not None
    assert of_vault.policy == VAULT
