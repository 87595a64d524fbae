"""The result of an inspection: findings, and what a transaction does to a vault."""

from dataclasses import dataclass
from enum import StrEnum

from multisig.keys import Fingerprint
from multisig.network import Network
from multisig.shown import ByMember
from multisig.tokens.payload import Payload
from multisig.transaction import OutPoint
from multisig.units import FeeRate, Sats


class Severity(StrEnum):
    """WARN is shown to the person; a PSBT with a REFUSE must never reach a device."""

    WARN = "warn"
    REFUSE = "refuse"


class FindingCode(StrEnum):
    """One kind of finding each, with the severity it always has."""

    # Whose coins, and how much they hold.
    INPUT_NOT_OURS = "input-not-ours"
    ABSURD_PATH = "absurd-path"
    DUPLICATE_INPUT = "duplicate-input"
    PREVIOUS_TRANSACTION_MISSING = "previous-transaction-missing"
    PREVIOUS_TRANSACTION_MISMATCH = "previous-transaction-mismatch"
    AMOUNT_MISMATCH = "amount-mismatch"
    SCRIPT_MISMATCH = "script-mismatch"
    WITNESS_SCRIPT_MISMATCH = "witness-script-mismatch"
    ORIGINS_MISSING = "origins-missing"
    ORIGINS_MISMATCH = "origins-mismatch"
    # How it is signed.
    SIGHASH_NOT_ALL = "sighash-not-all"
    BAD_SIGNATURE = "bad-signature"
    INPUT_FINALISED = "input-finalised"
    # Where the money goes.
    NO_OUTPUTS = "no-outputs"
    FAKE_CHANGE = "fake-change"
    UNKNOWN_OUTPUT_SCRIPT = "unknown-output-script"
    OP_RETURN_MALFORMED = "op-return-malformed"
    OP_RETURN_MULTIPLE = "op-return-multiple"
    OP_RETURN_BURNS = "op-return-burns"
    TOKEN_PAYLOAD_INVALID = "token-payload-invalid"  # noqa: S105 - a token of value, not of access
    ANCHOR_OUTPUT = "anchor-output"
    ANCHOR_BURNS = "anchor-burns"
    DUST_OUTPUT = "dust-output"
    # The transaction as a whole.
    WRONG_NETWORK = "wrong-network"
    XPUB_MISMATCH = "xpub-mismatch"
    FEE_NEGATIVE = "fee-negative"
    FEE_ABOVE_LIMIT = "fee-above-limit"
    FEE_HIGH = "fee-high"
    NON_STANDARD_VERSION = "non-standard-version"
    LOCKED_BY_TIME = "locked-by-time"
    LOCKED_BY_AGE = "locked-by-age"
    # A message to be signed (BIP-322).
    NOT_A_PROOF = "not-a-proof"
    MESSAGE_NOT_SHOWABLE = "message-not-showable"

    @property
    def severity(self) -> Severity:
        return Severity.WARN if self in _WARNINGS else Severity.REFUSE


# Every other code refuses. Add a code here only if a person may sensibly sign in spite of it.
_WARNINGS = frozenset(
    {
        FindingCode.ANCHOR_OUTPUT,
        FindingCode.DUST_OUTPUT,
        FindingCode.FEE_HIGH,
        FindingCode.LOCKED_BY_AGE,
        FindingCode.LOCKED_BY_TIME,
    }
)

WHOLE = "transaction"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: what (`code`), how bad, in words, and where ("input 3", "transaction")."""

    code: str
    severity: Severity
    sentence: str
    subject: str


def found(code: FindingCode, sentence: str, subject: str = WHOLE) -> Finding:
    return Finding(code.value, code.severity, sentence, subject)


@dataclass(frozen=True, slots=True, repr=False)
class InspectedInput(ByMember):
    """A coin that is spent. `amount`, `chain` and `address_index` are None where they are not proven."""

    index: int
    outpoint: OutPoint
    amount: Sats | None
    chain: int | None
    address_index: int | None
    signed_by: tuple[Fingerprint, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Payment(ByMember):
    """An output that is not proven to come back. `address` is None where the script has none."""

    output_index: int
    amount: Sats
    script_pubkey: bytes
    address: str | None


@dataclass(frozen=True, slots=True, repr=False)
class ProvenChange(ByMember):
    """An output whose script was derived again from the policy: the money stays."""

    output_index: int
    amount: Sats
    chain: int
    index: int
    address: str


@dataclass(frozen=True, slots=True, repr=False)
class OpReturn(ByMember):
    """An output that only carries data. `token` is what the data says where it is a token's payload."""

    output_index: int
    data: bytes
    token: Payload | None = None


@dataclass(frozen=True, slots=True, repr=False)
class ProvenCoin(ByMember):
    """A coin of the policy that a proof names, with its amount as its own previous transaction has it."""

    outpoint: OutPoint
    amount: Sats
    address: str


@dataclass(frozen=True, slots=True, repr=False)
class ProofOfControl(ByMember):
    """A message that `address`, of the policy, is to sign (BIP-322), and coins beside it in their inputs'
    order.
    """

    message: str
    address: str
    coins: tuple[ProvenCoin, ...]

    @property
    def total(self) -> Sats:
        return Sats(sum(coin.amount for coin in self.coins))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Inspection(ByMember):
    """What a transaction does. Every figure is proven by the PSBT's bytes and the policy.

    Amounts are satoshi. `total_in`, `fee` and `fee_rate` are None where the amount of a coin is not proven,
    never where `ok`; a `fee` below zero is refused, and has the rate 0. `vsize` is that of the signed
    transaction, with signatures at their usual size. A transaction of `version` 3 is TRUC (BIP-431). `digest`
    (hex SHA-256) covers the unsigned transaction, the policy and everything shown but who has signed so far:
    an approval is bound to it. With `proof` it is no payment: it can never be mined, and pays neither anybody
    nor a fee.
    """

    network: Network
    txid: str
    inputs: tuple[InspectedInput, ...]
    payments: tuple[Payment, ...]
    change: tuple[ProvenChange, ...]
    op_returns: tuple[OpReturn, ...]
    total_in: Sats | None
    total_out: Sats
    fee: Sats | None
    fee_rate: FeeRate | None
    vsize: int
    version: int
    locktime: int
    locktime_holds: bool
    signals_rbf: bool
    findings: tuple[Finding, ...]
    digest: str
    proof: ProofOfControl | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing refuses. Warnings are for the person to weigh."""
        return all(finding.severity is not Severity.REFUSE for finding in self.findings)

    @property
    def token_output(self) -> OpReturn | None:
        """The first that carries a token's payload; None where none does."""
        return next((output for output in self.op_returns if output.token is not None), None)
