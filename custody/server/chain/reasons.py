"""A node's reject reasons, mapped to our stable codes.
Bitcoin Core's texts come from `sendrawtransaction` and `testmempoolaccept`, directly or through an explorer.
They are used because the numeric codes beside them are too coarse.
(Core: validation.cpp, consensus/tx_check.cpp, consensus/tx_verify.cpp, policy/policy.cpp, util/error.cpp.)
"""

from custody.server.chain.backend import RefusalCode

# The first match decides. Any other text is one node's policy or problem ("dust", "too-long-mempool-chain",
# "mempool full"): no verdict on the transaction, so the caller tries again.
_CODES: tuple[tuple[str, RefusalCode | None], ...] = (
    ("bad-txns-inputs-missingorspent", RefusalCode.MISSING_INPUTS),
    ("missing inputs", RefusalCode.MISSING_INPUTS),
    ("missing-inputs", RefusalCode.MISSING_INPUTS),
    ("txn-mempool-conflict", RefusalCode.CONFLICT),
    ("insufficient fee", RefusalCode.CONFLICT),
    ("replacement-adds-unconfirmed", RefusalCode.CONFLICT),
    ("too many potential replacements", RefusalCode.CONFLICT),
    ("bad-txns-spends-conflicting-tx", RefusalCode.CONFLICT),
    ("bad-txns-nonfinal", RefusalCode.NON_FINAL),
    ("non-final", RefusalCode.NON_FINAL),
    ("non-bip68-final", RefusalCode.NON_FINAL),
    ("bad-txns-premature-spend-of-coinbase", RefusalCode.IMMATURE),
    ("min relay fee not met", RefusalCode.FEE_TOO_LOW),
    ("mempool min fee not met", RefusalCode.FEE_TOO_LOW),
    ("max-fee-exceeded", RefusalCode.FEE_TOO_HIGH),
    ("fee exceeds maximum", RefusalCode.FEE_TOO_HIGH),
    ("absurdly-high-fee", RefusalCode.FEE_TOO_HIGH),
    # Policy, in nodes before release 30: a miner may still accept it. Later nodes do not distinguish the two.
    ("non-mandatory-script-verify-flag", None),
    ("script-verify-flag", RefusalCode.INVALID_SCRIPT),
    ("bad-txns-oversize", RefusalCode.TOO_LARGE),
    ("tx-size-small", RefusalCode.MALFORMED),
    ("tx-size", RefusalCode.TOO_LARGE),
    ("tx decode failed", RefusalCode.MALFORMED),
    ("bad-txns-in-belowout", RefusalCode.MALFORMED),
    ("bad-txns-fee-outofrange", RefusalCode.MALFORMED),
    ("bad-txns-inputvalues-outofrange", RefusalCode.MALFORMED),
    ("bad-txns-inputs-duplicate", RefusalCode.MALFORMED),
    ("bad-txns-prevout-null", RefusalCode.MALFORMED),
    ("bad-txns-vin-empty", RefusalCode.MALFORMED),
    ("bad-txns-vout-", RefusalCode.MALFORMED),
    ("bad-txns-txouttotal-toolarge", RefusalCode.MALFORMED),
)
_KNOWN = (
    "txn-already-in-mempool",
    "txn-already-known",
    "txn-same-nonwitness-data-in-mempool",
    "already in block chain",
    "already in utxo set",
)


def refusal_of(text: str) -> RefusalCode | None:
    """The code of a reject reason; None where it is no verdict on the transaction."""
    words = text.lower()
    return next((code for part, code in _CODES if part in words), None)


def says_known(text: str) -> bool:
    """Whether the node says that it has the transaction already."""
    words = text.lower()
    return any(part in words for part in _KNOWN)
