"""The interface to the Bitcoin network: an embedded chain, a node or an explorer implements it.

Answers are values. Only an unreachable backend is an exception, because every caller treats it the same way:
keep what is stored and try again later.

A node's reject reasons are mapped to our stable codes here. Bitcoin Core's texts come from
`sendrawtransaction`, directly or through an explorer. They are used because the numeric codes beside them
are too coarse. (Core: validation.cpp, consensus/tx_check.cpp,
consensus/tx_verify.cpp, policy/policy.cpp, util/error.cpp.)
"""

from collections.abc import Collection, Container
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from multisig.network import Network
from multisig.transaction import OutPoint, Transaction
from multisig.units import FeeRate, Sats

# BIP-113: a block's time is above the median of this many before it.
MEDIAN_TIME_SPAN: Final = 11


@dataclass(frozen=True)
class BlockRef:
    """A block of the best chain: hash in display order, header time in Unix seconds."""

    height: int
    hash: str
    time: int


@dataclass(frozen=True)
class SpendingTransaction:
    """The transaction that spends an output. `block` is None while it is in the mempool."""

    txid: str
    block: BlockRef | None


@dataclass(frozen=True)
class FoundOutput:
    """An output that pays a watched script. `block` is None while unconfirmed."""

    outpoint: OutPoint
    amount: Sats
    script_pubkey: bytes
    block: BlockRef | None
    coinbase: bool
    spent: SpendingTransaction | None

    def touched_since(self, height: int) -> bool:
        """Whether it was created or spent at that height, above it, or in the mempool."""
        created = self.block is None or self.block.height >= height
        spent = self.spent is not None and (self.spent.block is None or self.spent.block.height >= height)
        return created or spent


def outputs_of(
    transaction: Transaction,
    block: BlockRef | None,
    scripts: Container[bytes] | None = None,
    *,
    coinbase: bool = False,
) -> list[FoundOutput]:
    """The transaction's outputs that pay one of the scripts, or all of them, as unspent. ``block``: its own,
    None in the mempool.
    """
    return [
        FoundOutput(
            OutPoint(transaction.txid, vout), out.amount, out.script_pubkey, block, coinbase, spent=None
        )
        for vout, out in enumerate(transaction.outputs)
        if scripts is None or out.script_pubkey in scripts
    ]


@dataclass(frozen=True)
class ChainTransaction:
    """A transaction the backend knows. `block` is None while it waits in the mempool."""

    transaction: Transaction
    block: BlockRef | None


@dataclass(frozen=True)
class DataTransaction:
    """A transaction with an output that pushes data with the requested prefix.
    `position`: its index in the block. `caller`: the output script that its first input spends.
    """

    position: int
    transaction: Transaction
    caller: bytes


@dataclass(frozen=True)
class DataBlock:
    """A block of the best chain: its parent's hash in display order, and its transactions with such data, in
    the block's order.
    """

    ref: BlockRef
    previous: str
    transactions: tuple[DataTransaction, ...]


class RefusalCode(StrEnum):
    """Why a transaction is refused. `MISSING_INPUTS` and `NON_FINAL` may pass by themselves.
    `POLICY` is a valid transaction that this node does not relay, for a rule or a problem of its own.
    """

    MISSING_INPUTS = "missing-inputs"
    CONFLICT = "conflict"
    NON_FINAL = "non-final"
    IMMATURE = "immature-coinbase"
    FEE_TOO_LOW = "fee-too-low"
    FEE_TOO_HIGH = "fee-too-high"
    INVALID_SCRIPT = "invalid-script"
    MALFORMED = "malformed"
    TOO_LARGE = "too-large"
    POLICY = "policy"


# Permanent refusals, which free a payment's coins. A fee above one node's cap is not among them: the
# transaction is valid and signed, so its coins must stay locked, or the payment could be made twice.
FOR_GOOD = frozenset({RefusalCode.INVALID_SCRIPT, RefusalCode.MALFORMED, RefusalCode.TOO_LARGE})


@dataclass(frozen=True)
class Accepted:
    """The mempool holds it now."""

    txid: str


@dataclass(frozen=True)
class AlreadyKnown:
    """It is in the mempool or in a block already: a success for a broadcast."""

    txid: str
    confirmed: bool


@dataclass(frozen=True)
class BroadcastRefused:
    """`reason`: in the backend's words."""

    txid: str
    code: RefusalCode
    reason: str


Outcome = Accepted | AlreadyKnown | BroadcastRefused


class ChainBackend(Protocol):
    """Every method may raise ChainUnavailable; all may be called from several threads."""

    @property
    def network(self) -> Network:
        """The network it serves."""
        ...

    def tip(self) -> BlockRef:
        """The last block of the best chain."""
        ...

    def block_at(self, height: int) -> BlockRef | None:
        """The best chain's block at that height; None above the tip."""
        ...

    def outputs_to(self, scripts: Collection[bytes], *, since_height: int = 0) -> tuple[FoundOutput, ...]:
        """Every output that pays one of `scripts`, spent or not, which was created or spent at or above
        `since_height`, or is so in the mempool. What a reorganisation or an eviction removed is simply
        absent.
        """
        ...

    def transaction(self, txid: str) -> ChainTransaction | None:
        """A transaction of the best chain or the mempool."""
        ...

    def data_at(self, height: int, prefix: bytes) -> DataBlock | None:
        """The best chain's block at that height, with its transactions that push data beginning with
        `prefix`; None above the tip.
        """
        ...

    def broadcast(self, transaction: Transaction) -> Outcome:
        """Send it to the network. Safe to repeat."""
        ...

    def fee_estimate(self, target_blocks: int) -> FeeRate | None:
        """The rate that confirms within that many blocks; None where the backend cannot tell."""
        ...

    def least_fee_rate(self) -> FeeRate | None:
        """The least rate at which it takes a transaction now; None where the backend cannot tell."""
        ...


# The first match decides. Any other text is one node's policy or problem ("dust", "too-long-mempool-chain",
# since release 31 "too-large-cluster", "mempool full"): no verdict on the transaction, so the caller tries
# again.
_CODES: tuple[tuple[str, RefusalCode | None], ...] = (
    ("bad-txns-inputs-missingorspent", RefusalCode.MISSING_INPUTS),
    ("missing inputs", RefusalCode.MISSING_INPUTS),
    ("missing-inputs", RefusalCode.MISSING_INPUTS),
    ("txn-mempool-conflict", RefusalCode.CONFLICT),
    ("insufficient fee", RefusalCode.CONFLICT),
    # Since release 31: what the replacement adds to the mempool is not better than what it removes.
    ("replacement-failed", RefusalCode.CONFLICT),
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
