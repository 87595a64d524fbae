"""A node's words and our codes."""

import pytest

from custody.server.chain.backend import RefusalCode, refusal_of, says_known


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("bad-txns-inputs-missingorspent", RefusalCode.MISSING_INPUTS),
        ('sendrawtransaction RPC error: {"code":-25,"message":"Missing inputs"}', RefusalCode.MISSING_INPUTS),
        ("txn-mempool-conflict", RefusalCode.CONFLICT),
        ("insufficient fee, rejecting replacement ab; new feerate 1 <= old feerate 2", RefusalCode.CONFLICT),
        ("replacement-failed", RefusalCode.CONFLICT),
        ("non-final", RefusalCode.NON_FINAL),
        ("non-BIP68-final", RefusalCode.NON_FINAL),
        ("bad-txns-premature-spend-of-coinbase, tried to spend coinbase at depth 1", RefusalCode.IMMATURE),
        ("min relay fee not met, 0 < 110", RefusalCode.FEE_TOO_LOW),
        ("mempool min fee not met", RefusalCode.FEE_TOO_LOW),
        ("Fee exceeds maximum configured by user (e.g. -maxtxfee, maxfeerate)", RefusalCode.FEE_TOO_HIGH),
        ("max-fee-exceeded", RefusalCode.FEE_TOO_HIGH),
        ("mandatory-script-verify-flag-failed (Witness program hash mismatch)", RefusalCode.INVALID_SCRIPT),
        ("mempool-script-verify-flag-failed (Invalid Schnorr signature)", RefusalCode.INVALID_SCRIPT),
        ("tx-size", RefusalCode.TOO_LARGE),
        ("tx-size-small", RefusalCode.MALFORMED),
        ("bad-txns-in-belowout, value in (1) < value out (2)", RefusalCode.MALFORMED),
        ("TX decode failed. Make sure the tx has at least one input.", RefusalCode.MALFORMED),
        # A node's own trouble is no verdict.
        *(
            (text, None)
            for text in (
                "",
                "mempool full",
                "dust",
                "scriptpubkey",
                "too-long-mempool-chain",
                "TRUC-violation",
                "502",
            )
        ),
    ],
)
def test_each_text_has_its_code(text, code):
    assert refusal_of(text) is code
    assert not says_known(text)


def test_what_the_node_has_already_is_no_refusal():
    for text in (
        "txn-already-in-mempool",
        "txn-already-known",
        "Transaction already in block chain",
        "Transaction outputs already in utxo set",
    ):
        assert (says_known(text), refusal_of(text)) == (True, None)
