"""What one PSBT says about each input and output, as values (BIP-174, "Specification")."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from multisig.keys import KeyOrigin
from multisig.transaction import OutPoint, Transaction, TxOut
from multisig.units import Sats


@dataclass(frozen=True, slots=True, kw_only=True)
class PsbtInput:
    """Claims about one input. Nothing here is proven: `multisig.inspection` says what is.

    Public keys are serialised points of 33 (or, in other people's PSBTs, 65) bytes; partial signatures
    are DER with the sighash byte at the end.
    """

    outpoint: OutPoint
    sequence: int
    witness_utxo: TxOut | None = None
    non_witness_utxo: Transaction | None = None
    witness_script: bytes | None = None
    redeem_script: bytes | None = None
    derivations: Mapping[bytes, KeyOrigin] = field(default_factory=dict)
    partial_signatures: Mapping[bytes, bytes] = field(default_factory=dict)
    sighash_type: int | None = None
    final_script_sig: bytes | None = None
    final_script_witness: tuple[bytes, ...] | None = None

    @property
    def is_final(self) -> bool:
        return self.final_script_sig is not None or self.final_script_witness is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class PsbtOutput:
    """Amount and script of one output of the unsigned transaction, and what is claimed about it."""

    amount: Sats
    script_pubkey: bytes
    witness_script: bytes | None = None
    redeem_script: bytes | None = None
    derivations: Mapping[bytes, KeyOrigin] = field(default_factory=dict)
