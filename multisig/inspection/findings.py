"""What an inspection may find. Codes never change: people's rules, tests and translations hang on them."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """WARN is shown beside the figures; REFUSE must never reach a device."""

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
    WITNESS_UTXO_MISSING = "witness-utxo-missing"
    AMOUNT_MISMATCH = "amount-mismatch"
    SCRIPT_MISMATCH = "script-mismatch"
    WITNESS_SCRIPT_MISMATCH = "witness-script-mismatch"
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
    DUST_OUTPUT = "dust-output"
    # The transaction as a whole.
    WRONG_NETWORK = "wrong-network"
    XPUB_MISMATCH = "xpub-mismatch"
    XPUBS_MISSING = "xpubs-missing"
    FEE_NEGATIVE = "fee-negative"
    FEE_ABOVE_LIMIT = "fee-above-limit"
    FEE_HIGH = "fee-high"
    NON_STANDARD_VERSION = "non-standard-version"
    LOCKED_BY_TIME = "locked-by-time"
    LOCKED_BY_AGE = "locked-by-age"

    @property
    def severity(self) -> Severity:
        return Severity.WARN if self in _WARNINGS else Severity.REFUSE


# Whoever adds a code must think before making it less than a refusal.
_WARNINGS = frozenset(
    {
        FindingCode.DUST_OUTPUT,
        FindingCode.FEE_HIGH,
        FindingCode.LOCKED_BY_AGE,
        FindingCode.LOCKED_BY_TIME,
        FindingCode.XPUBS_MISSING,
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
