"""Inspects inputs: whether the coin is the policy's, its proven amount, and whether it may be signed."""

from collections.abc import Iterator
from dataclasses import dataclass

from multisig.inspection.model import Finding, FindingCode, InspectedInput, found
from multisig.inspection.other_wallets import ADVICE, other_wallet
from multisig.keys import Fingerprint
from multisig.proofs import OurScript, Prover, Unproven, proven_output
from multisig.psbt import Psbt, PsbtInput
from multisig.signatures import signing_input
from multisig.transaction import SIGHASH_ALL, SighashCache, TxOut
from multisig.units import Sats

_WHY_UNPROVEN = {
    Unproven.MISSING: (
        FindingCode.PREVIOUS_TRANSACTION_MISSING,
        "The transaction that made this coin is not included, so its amount is not proven.",
    ),
    Unproven.MISMATCH: (
        FindingCode.PREVIOUS_TRANSACTION_MISMATCH,
        "The transaction included is not the one that made this coin.",
    ),
}


@dataclass(frozen=True, slots=True)
class InputsSeen:
    inputs: tuple[InspectedInput, ...]
    findings: tuple[Finding, ...]
    all_proven: bool


def inspect_inputs(psbt: Psbt, prover: Prover) -> InputsSeen:
    cache = SighashCache(psbt.tx)
    seen = [_inspect(psbt, index, prover, cache) for index in range(len(psbt.inputs))]
    return InputsSeen(
        inputs=tuple(item for item, _ in seen),
        findings=tuple(finding for _, findings in seen for finding in findings),
        all_proven=not any(isinstance(proven_output(item), Unproven) for item in psbt.inputs),
    )


def _inspect(
    psbt: Psbt, index: int, prover: Prover, cache: SighashCache
) -> tuple[InspectedInput, list[Finding]]:
    item, subject = psbt.inputs[index], f"input {index}"
    findings = list(_how_it_is_signed(item, subject))
    spent = proven_output(item)
    if isinstance(spent, Unproven):
        findings.append(found(*_WHY_UNPROVEN[spent], subject))
        return InspectedInput(index, item.outpoint, Sats(0), None, None, ()), findings
    findings += _claimed_coin(item, spent, subject)
    ours = prover.prove(spent.script_pubkey, item.derivations)
    if ours is None:
        findings.append(_not_ours(item, spent, prover, subject))
        return InspectedInput(index, item.outpoint, spent.amount, None, None, ()), findings
    findings += _claimed_script(item, ours, subject)
    signed_by, bad = _signatures(psbt, index, ours, spent.amount, cache)
    findings += bad
    seen = InspectedInput(index, item.outpoint, spent.amount, ours.place.chain, ours.place.index, signed_by)
    return seen, findings


def _how_it_is_signed(item: PsbtInput, subject: str) -> Iterator[Finding]:
    if item.sighash_type not in {None, SIGHASH_ALL}:
        yield found(
            FindingCode.SIGHASH_NOT_ALL,
            "A signature is asked for that leaves parts of the transaction open to change (sighash is not "
            "ALL).",
            subject,
        )
    if item.is_final:
        yield found(
            FindingCode.INPUT_FINALISED, "The input is already finalised; there is nothing to sign.", subject
        )


def _claimed_coin(item: PsbtInput, spent: TxOut, subject: str) -> Iterator[Finding]:
    stated = item.witness_utxo
    if stated is None:
        yield found(
            FindingCode.WITNESS_UTXO_MISSING,
            "The coin itself is not included; some devices skip it then.",
            subject,
        )
        return
    if stated.amount != spent.amount:
        yield found(
            FindingCode.AMOUNT_MISMATCH,
            f"The coin is stated as {stated.amount} sat; its transaction says {spent.amount} sat.",
            subject,
        )
    if stated.script_pubkey != spent.script_pubkey:
        yield found(
            FindingCode.SCRIPT_MISMATCH, "The coin is stated with a script that is not its own.", subject
        )


def _not_ours(item: PsbtInput, spent: TxOut, prover: Prover, subject: str) -> Finding:
    if any(place.is_absurd for place in prover.claimed_places(item.derivations)):
        return found(
            FindingCode.ABSURD_PATH, "The coin is said to lie at an index where no wallet looks.", subject
        )
    other = other_wallet(spent.script_pubkey, item.witness_script, item.derivations, prover)
    if other is None:
        sentence = "The coin is not proven to belong to this vault."
    else:
        sentence = f"The coin is said to be of another wallet with the same keys: {other}. {ADVICE}"
    return found(FindingCode.INPUT_NOT_OURS, sentence, subject)


def _claimed_script(item: PsbtInput, ours: OurScript, subject: str) -> Iterator[Finding]:
    if item.witness_script != ours.witness_script or item.redeem_script is not None:
        yield found(
            FindingCode.WITNESS_SCRIPT_MISMATCH,
            "The script given for this coin is missing, or is not the vault's.",
            subject,
        )
    if item.derivations != ours.derivations:
        yield found(
            FindingCode.ORIGINS_MISMATCH,
            "The keys given for this coin, or their paths, are not those of the vault.",
            subject,
        )


def _signatures(
    psbt: Psbt, index: int, ours: OurScript, amount: Sats, cache: SighashCache
) -> tuple[tuple[Fingerprint, ...], list[Finding]]:
    claimed = psbt.inputs[index].partial_signatures
    if not claimed:
        return (), []
    signing = signing_input(index, ours, amount, cache)
    valid = {key for key, signature in claimed.items() if signing.is_valid(key, signature)}
    signed_by = tuple(device for key, device in signing.signers.items() if key in valid)
    if len(valid) == len(claimed):
        return signed_by, []
    sentence = "A signature on this input is invalid, or not by a key of this vault."
    return signed_by, [found(FindingCode.BAD_SIGNATURE, sentence, f"input {index}")]
