"""What a transaction does to a vault, as values a person can be shown."""

from dataclasses import dataclass

from multisig.inspection.findings import Finding, Severity
from multisig.keys import Fingerprint
from multisig.network import Network
from multisig.tokens.payload import Payload
from multisig.transaction import OutPoint
from multisig.units import FeeRate, Sats


@dataclass(frozen=True, slots=True)
class InspectedInput:
    """A coin that is spent. `amount` is 0, `chain` and `address_index` None, where they are not proven."""

    index: int
    outpoint: OutPoint
    amount: Sats
    chain: int | None
    address_index: int | None
    signed_by: tuple[Fingerprint, ...]


@dataclass(frozen=True, slots=True)
class Payment:
    """An output that is not proven to come back. `address` is None where the script has none."""

    output_index: int
    amount: Sats
    script_pubkey: bytes
    address: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """An output whose script was derived again from the policy: the money stays."""

    output_index: int
    amount: Sats
    chain: int
    index: int
    address: str


@dataclass(frozen=True, slots=True)
class OpReturn:
    """An output that only carries data. `token` is what the data says where it is a token's payload."""

    output_index: int
    data: bytes
    token: Payload | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """Every figure comes from the PSBT's bytes and the policy, none from a claim.

    Amounts are satoshi; `total_in` counts proven coins only, so `fee` means something only where no finding
    refuses (it may be negative then, never where `ok`). `vsize` is that of the signed transaction, with
    signatures at their usual size. `digest` (hex SHA-256) covers the unsigned transaction, the policy and
    everything shown but who has signed so far: an approval is bound to it.
    """

    network: Network
    txid: str
    inputs: tuple[InspectedInput, ...]
    payments: tuple[Payment, ...]
    change: tuple[Change, ...]
    op_returns: tuple[OpReturn, ...]
    total_in: Sats
    total_out: Sats
    fee: Sats
    fee_rate: FeeRate
    vsize: int
    locktime: int
    signals_rbf: bool
    findings: tuple[Finding, ...]
    digest: str

    @property
    def ok(self) -> bool:
        """Whether nothing refuses. Warnings are for the person to weigh."""
        return all(finding.severity is not Severity.REFUSE for finding in self.findings)

    @property
    def token_output(self) -> OpReturn | None:
        """The first that carries a token's payload; None where none does."""
        return next((output for output in self.op_returns if output.token is not None), None)
