"""Does this signature prove control of this address with this message? (BIP-322, "Verification")."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from multisig.bip322.messages import LEGACY, ProofSignature, burn, is_legacy, message_bytes, to_sign, to_spend
from multisig.bip322.rules import BrokenRule, Inconclusive, check_input
from multisig.errors import InvalidMessage
from multisig.psbt import Psbt, PsbtInput
from multisig.script import parse_witness_output
from multisig.shown import ByMember
from multisig.transaction import OutPoint, SighashCache, Transaction, TxOut

Consensus = Callable[[Transaction, Sequence[TxOut]], str | None]
"""Why the consensus rules forbid this transaction, which spends these outputs; None where they allow it."""

_VERSIONS = frozenset({0, 2})


class ProofState(StrEnum):
    """The outcome. `INCONCLUSIVE` means that the script is not supported: nothing is proven."""

    VALID = "valid"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True, repr=False)
class NamedCoin(ByMember):
    """A coin that a proof of funds spends. Whether it exists and is unspent is for the caller to ask the
    chain.
    """

    outpoint: OutPoint
    output: TxOut


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProofVerdict(ByMember):
    """The outcome of a verification. `lock_time` (nLockTime) and `age` (nSequence of the first input) are set
    if it is valid.
    """

    state: ProofState
    reason: str = ""
    lock_time: int = 0
    age: int = 0
    coins: tuple[NamedCoin, ...] = ()


class _Invalid(Exception):
    pass


def verify_message(message: str, challenge: bytes, signature: str, consensus: Consensus) -> ProofVerdict:
    """Whether `signature` (text) signs `message` for the output script `challenge`. A malformed signature is
    a verdict, not an exception.

    `consensus` is called once, before the further rules of the BIP are checked.
    """
    if is_legacy(signature):
        return ProofVerdict(state=ProofState.INCONCLUSIVE, reason=LEGACY)
    try:
        parsed = ProofSignature.parse(signature)
        tx, coins = _transaction(message, challenge, parsed)
        spent = [TxOut(burn().amount, challenge), *(coin.output for coin in coins)]
        _require_consensus(consensus(tx, spent))
        _check_rules(tx, spent)
    except (InvalidMessage, _Invalid, BrokenRule) as error:
        return ProofVerdict(state=ProofState.INVALID, reason=str(error))
    except Inconclusive as error:
        return ProofVerdict(state=ProofState.INCONCLUSIVE, reason=str(error))
    return ProofVerdict(state=ProofState.VALID, lock_time=tx.locktime, age=tx.inputs[0].sequence, coins=coins)


def _require_consensus(forbidden: str | None) -> None:
    if forbidden is not None:
        raise _Invalid(f"It is not a valid signature of this message by this address: {forbidden}.")


def _check_rules(tx: Transaction, spent: Sequence[TxOut]) -> None:
    cache, unknown = SighashCache(tx), None
    for index, output in enumerate(spent):
        try:
            check_input(tx, index, output, cache)
        except Inconclusive as error:
            # A required rule that another input breaks counts for more.
            unknown = unknown or error
    if unknown is not None:
        raise unknown
    if tx.version not in _VERSIONS:
        raise Inconclusive(f"The transaction has version {tx.version}, which has no rules yet.")


def _transaction(
    message: str, challenge: bytes, signature: ProofSignature
) -> tuple[Transaction, tuple[NamedCoin, ...]]:
    match signature.content:
        case tuple() as witness:
            if parse_witness_output(challenge) is None:
                raise _Invalid("A simple signature is for an address of segwit alone.")
            tx = to_sign(message, challenge)
            return replace(tx, inputs=(replace(tx.inputs[0], witness=witness),)), ()
        case Transaction() as tx:
            _require_form(tx, message, challenge)
            if len(tx.inputs) > 1:
                raise _Invalid("A full signature spends more than the message: those come as a PSBT.")
            return tx, ()
        case Psbt() as psbt:
            _require_form(psbt.tx, message, challenge)
            _require_agreement(psbt, message, challenge)
            return _extracted(psbt), tuple(_coin(psbt, index) for index in range(1, len(psbt.inputs)))


def _require_form(tx: Transaction, message: str, challenge: bytes) -> None:
    if not tx.inputs or tx.inputs[0].outpoint != OutPoint(to_spend(message, challenge).txid, 0):
        raise _Invalid("It is the signature of another message or another address.")
    if tx.outputs != (burn(),):
        raise _Invalid("It is no proof but a payment: a proof pays nothing.")


def _require_agreement(psbt: Psbt, message: str, challenge: bytes) -> None:
    """The PSBT's fields for the message and the first coin must agree: programs that read different fields
    must see the same proof.
    """
    holder, first = to_spend(message, challenge), psbt.inputs[0]
    if (
        psbt.signed_message not in {None, message_bytes(message)}
        or first.non_witness_utxo not in {None, holder}
        or first.witness_utxo not in {None, holder.outputs[0]}
    ):
        raise _Invalid("The PSBT states another message or address than it signs.")


def _extracted(psbt: Psbt) -> Transaction:
    """The signed transaction of a finalised PSBT (BIP-174, "Transaction Extractor")."""
    if not all(item.is_final for item in psbt.inputs):
        raise _Invalid("An input is not finalised.")
    inputs = (
        replace(txin, script_sig=item.final_script_sig or b"", witness=item.final_script_witness or ())
        for txin, item in zip(psbt.tx.inputs, psbt.inputs, strict=True)
    )
    return replace(psbt.tx, inputs=tuple(inputs))


def _coin(psbt: Psbt, index: int) -> NamedCoin:
    item = psbt.inputs[index]
    previous = item.non_witness_utxo or _earlier(psbt.inputs[:index], item.outpoint)
    if previous is None:
        stated = item.witness_utxo
        if stated is None:
            raise _Invalid(f"The coin of input {index} is not included.")
        if not _is_segwit(item, stated):
            raise _Invalid(f"The coin of input {index} needs the transaction that made it.")
        return NamedCoin(item.outpoint, stated)
    if previous.txid != item.outpoint.txid or item.outpoint.vout >= len(previous.outputs):
        raise _Invalid(f"The transaction included for input {index} is not the one that made its coin.")
    output = previous.outputs[item.outpoint.vout]
    if item.witness_utxo not in {None, output}:
        raise _Invalid(f"The coin of input {index} is stated otherwise than its transaction has it.")
    return NamedCoin(item.outpoint, output)


def _earlier(inputs: Sequence[PsbtInput], outpoint: OutPoint) -> Transaction | None:
    """Only the first of several coins of one transaction needs to include that transaction."""
    return next((item.non_witness_utxo for item in inputs if item.outpoint.txid == outpoint.txid), None)


def _is_segwit(item: PsbtInput, stated: TxOut) -> bool:
    return parse_witness_output(stated.script_pubkey) is not None or item.final_script_witness is not None
