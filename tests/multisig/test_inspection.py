"""What the inspection shows: payments, proven change, data, fee, and warnings. What it refuses, attack by
attack, is the corpus: tests/attacks/test_inspection.py.
"""

from dataclasses import replace

import pytest

from multisig import (
    CHANGE,
    RECEIVE,
    ChangeTo,
    FeeLimits,
    FeeRate,
    Network,
    SighashCache,
    TxOut,
    build_psbt,
    inspect,
    op_return_script,
    sats,
    secp256k1,
)
from multisig.inspection.inputs_and_outputs import MAX_FALSE_ORIGINS
from multisig.inspection.transaction import Totals, inspect_transaction
from multisig.script import P2A_SCRIPT
from tests.support.wallets import (
    ALICE,
    BOB,
    CAROL,
    MALLORY,
    fund,
    make_spend,
    make_vault,
    pay,
    with_inputs,
    with_output,
)

VAULT = make_vault()
SPEND = make_spend(VAULT)


def look(psbt, policy=VAULT, network=Network.REGTEST, **arguments):
    return inspect(psbt, policy, network=network, **arguments)


def codes(inspection):
    return [finding.code for finding in inspection.findings]


def test_data_is_shown_as_data():
    outputs = [ChangeTo(sats(99_000), CHANGE, 0), TxOut(sats(0), op_return_script(b"hello"))]
    seen = look(build_psbt(VAULT, [fund(VAULT, 100_000)], outputs, 0))
    assert [(item.output_index, item.data) for item in seen.op_returns] == [(1, b"hello")]
    assert (seen.ok, seen.payments) == (True, ())


def test_money_back_to_a_receive_address_is_proven_too():
    outputs = [ChangeTo(sats(99_000), RECEIVE, 5)]
    (change,) = look(build_psbt(VAULT, [fund(VAULT, 100_000)], outputs, 0)).change
    assert (change.chain, change.index) == (RECEIVE, 5)


def test_a_payment_with_foreign_origins_is_a_payment():
    other = ALICE.profile()
    strangers = make_vault((BOB, CAROL))
    psbt = build_psbt(other, [fund(other, 100_000)], [pay(99_000)], 0)
    stated = with_output(
        psbt,
        0,
        script_pubkey=strangers.script_pubkey(0, 0),
        witness_script=strangers.witness_script(0, 0),
        derivations=strangers.derivations(0, 0),
    )
    seen = look(stated, other)
    assert (len(seen.payments), seen.ok) == (1, True)


def test_who_has_signed_is_shown_only_when_it_verifies():
    seen = look(BOB.sign(ALICE.sign(SPEND), inputs=[1]))
    assert [set(coin.signed_by) for coin in seen.inputs] == [
        {ALICE.fingerprint},
        {ALICE.fingerprint, BOB.fingerprint},
    ]


def strangers_signature():
    """Mallory's own key signs the very digest that the vault's keys sign."""
    item = SPEND.inputs[0]
    digest = SighashCache(SPEND.tx).segwit_v0(0, item.witness_script, item.witness_utxo.amount)
    key = MALLORY.private_node(()).key
    return {0: {secp256k1.public_key_of(key): secp256k1.sign(key, digest) + b"\x01"}}


@pytest.mark.parametrize(
    ("signatures", "subject"),
    [
        (strangers_signature(), "input 0"),
        ({1: {next(iter(SPEND.inputs[1].derivations)): bytes.fromhex("300602010102010101")}}, "input 1"),
    ],
    ids=["a stranger's", "garbage"],
)
def test_one_bad_signature_beside_good_ones_is_refused_p7(signatures, subject):
    seen = look(ALICE.sign(SPEND).with_signatures(signatures))
    assert [(finding.code, finding.subject) for finding in seen.findings] == [("bad-signature", subject)]
    assert not seen.ok


def test_false_origins_without_end_are_named_to_a_bound_and_the_rest_are_payments_s34():
    many = [*[pay(1_000)] * (2 * MAX_FALSE_ORIGINS), TxOut(sats(1_000), b"\x51")]
    psbt = build_psbt(VAULT, [fund(VAULT, 10_000_000)], many, 0)
    origins = VAULT.derivations(CHANGE, 0)
    false = tuple(replace(output, derivations=origins) for output in psbt.outputs)
    seen = look(replace(psbt, outputs=false))
    assert codes(seen)[:-1] == ["fake-change"] * MAX_FALSE_ORIGINS + ["unknown-output-script"]
    assert len(seen.payments) == len(many)


def test_figures_beyond_all_money_are_findings_not_errors_s7():
    psbt = with_output(SPEND, 0, amount=sats(21_000_000 * 100_000_000))
    seen = look(with_output(psbt, 1, amount=sats(21_000_000 * 100_000_000)))
    assert "fee-negative" in codes(seen)
    assert seen.fee < 0
    assert seen.fee_rate == FeeRate(0)


def costing(fee):
    return make_spend(VAULT, fee=fee)


def locked(sequence, locktime=0, version=2):
    psbt = with_inputs(SPEND, *(replace(item, sequence=sequence) for item in SPEND.inputs))
    return replace(psbt, tx=replace(psbt.tx, locktime=locktime, version=version))


RICH = build_psbt(VAULT, [fund(VAULT, 21_000_000 * 100_000_000)], [pay(1_000)], 0)


@pytest.mark.parametrize(
    ("psbt", "how", "expected"),
    [
        (SPEND, {"network": Network.MAINNET}, ["wrong-network"]),
        (costing(9_999), {}, []),
        (costing(10_000), {}, ["fee-high"]),
        (costing(99_999), {}, ["fee-high"]),
        (costing(100_000), {}, ["fee-above-limit"]),
        (costing(1_000), {"limits": FeeLimits(max_fee=sats(999))}, ["fee-above-limit"]),
        (costing(1_000), {"limits": FeeLimits(max_fee=sats(1_000))}, []),
        (costing(1_000), {"limits": FeeLimits(max_rate=FeeRate(3_000))}, ["fee-above-limit"]),
        (costing(0), {}, []),
        (RICH, {}, ["fee-above-limit"]),
        (locked(0xFFFFFFFD, 499_999_999), {}, []),
        (locked(0xFFFFFFFD, 500_000_000), {}, ["locked-by-time"]),
        (locked(144), {}, ["locked-by-age", "locked-by-age"]),
        (locked(144, version=1), {}, []),
        (locked(0x80000000), {}, []),
        (locked(0xFFFFFFFD, version=3), {}, []),
        (locked(0xFFFFFFFD, version=0), {}, ["non-standard-version"]),
        (locked(0xFFFFFFFD, version=4), {}, ["non-standard-version"]),
    ],
)
def test_networks_fees_locks_and_versions_s7_s14(psbt, how, expected):
    assert codes(look(psbt, **how)) == expected


def test_p2a_is_named_and_holds_no_more_than_an_anchor_needs():
    for amount, code in ((0, "anchor-output"), (240, "anchor-output"), (241, "anchor-burns")):
        seen = look(with_output(SPEND, 0, script_pubkey=P2A_SCRIPT, amount=sats(amount)))
        assert code in codes(seen)
        assert "fake-change" not in codes(seen)


def test_version_3_is_replaceable_and_has_10_000_vb_at_most():
    """BIP-431, rules 1 and 4."""
    psbt = locked(0xFFFFFFFF, version=3)
    assert (look(psbt).version, look(psbt).signals_rbf) == (3, True)
    assert not look(locked(0xFFFFFFFF)).signals_rbf
    for vsize, found in ((10_000, []), (10_001, ["non-standard-version"])):
        totals = Totals(None, sats(0), vsize)
        seen = inspect_transaction(psbt, VAULT, Network.REGTEST, totals, FeeLimits())
        assert [each.code for each in seen] == found


def test_dust_is_warned_of():
    assert "dust-output" in codes(look(with_output(SPEND, 0, amount=sats(293))))
    assert "dust-output" not in codes(look(with_output(SPEND, 0, amount=sats(294))))


@pytest.mark.parametrize(
    ("sequence", "expected"), [(0xFFFFFFFD, True), (0xFFFFFFFE, False), (0xFFFFFFFF, False)]
)
def test_replaceability_is_shown(sequence, expected):
    assert look(locked(sequence)).signals_rbf is expected


def test_the_digest_holds_while_colleagues_sign_s24():
    assert look(ALICE.sign(SPEND)).digest == look(SPEND).digest


def test_the_digest_changes_with_whatever_is_shown_s24():
    again = [
        look(make_spend(VAULT)),
        look(make_spend(VAULT, fee=1_001)),
        look(make_spend(VAULT, locktime=1)),
        look(make_spend(make_vault(threshold=3))),
        look(with_output(SPEND, 1, derivations={}, witness_script=None)),
        inspect(SPEND, make_vault(threshold=1), network=Network.REGTEST),
        inspect(SPEND, VAULT, network=Network.SIGNET),
    ]
    assert again[0].digest == look(SPEND).digest
    assert len({seen.digest for seen in again}) == len(again)


def test_the_digest_never_changes_from_version_to_version_unnoticed():
    """Approvals are kept: a change of what is hashed needs a new version mark, and this line."""
    assert look(SPEND).digest == "f627258ba6fcdf24cc83700614acc55f6631e5e06a32eec0167b9eb2bcb1b622"
