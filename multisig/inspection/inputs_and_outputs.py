"""Inspects inputs and outputs: what is proven to be the policy's, and what is falsely claimed to be.

Of an input: whether the coin is the policy's, its proven amount, and whether it may be signed. Of an output:
a payment, proven change, data, or a false claim of change.

A wallet program that holds a vault and its signer's own keys (a Bitcoin Core wallet with both descriptors)
writes key origins beside every coin and output of its own. Such an output is refused as a false claim is, for
a device that believes an origin may not show it. The person is told what it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from multisig.errors import InvalidToken, InvalidTransaction
from multisig.hashes import hash160
from multisig.inspection.model import (
    Finding,
    FindingCode,
    InspectedInput,
    OpReturn,
    Payment,
    ProvenChange,
    found,
)
from multisig.keys import Fingerprint, KeyOrigin
from multisig.network import Network
from multisig.proofs import Derivations, OurScript, Prover, Unproven, policy_keys, proven_output
from multisig.psbt import Psbt, PsbtInput, PsbtOutput
from multisig.script import (
    P2A_SCRIPT,
    ScriptKind,
    classify,
    dust_threshold,
    encode_address,
    p2a_address,
    p2pkh,
    p2sh,
    p2wpkh,
    p2wsh,
    parse_multisig_script,
    parse_op_return,
)
from multisig.signatures import signing_input
from multisig.tokens.payload import Payload, token_of
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

    @property
    def total(self) -> Sats | None:
        """What the coins hold together; None where the amount of one is not proven."""
        amounts = [item.amount for item in self.inputs if item.amount is not None]
        return Sats(sum(amounts)) if len(amounts) == len(self.inputs) else None


def inspect_inputs(psbt: Psbt, prover: Prover) -> InputsSeen:
    cache = SighashCache(psbt.tx)
    seen = [_inspect(psbt, index, prover, cache) for index in range(len(psbt.inputs))]
    return InputsSeen(
        inputs=tuple(item for item, _ in seen),
        findings=tuple(finding for _, findings in seen for finding in findings),
    )


def _inspect(
    psbt: Psbt, index: int, prover: Prover, cache: SighashCache
) -> tuple[InspectedInput, list[Finding]]:
    item, subject = psbt.inputs[index], f"input {index}"
    findings = list(_how_it_is_signed(item, subject))
    spent = proven_output(item)
    if isinstance(spent, Unproven):
        findings.append(found(*_WHY_UNPROVEN[spent], subject))
        return InspectedInput(index, item.outpoint, None, None, None, ()), findings
    findings += _claimed_coin(item, spent, subject)
    ours = prover.prove(spent.script_pubkey, item.derivations)
    if ours is None:
        findings.append(_not_ours(item, spent, prover, subject))
        return InspectedInput(index, item.outpoint, spent.amount, None, None, ()), findings
    findings += _claims(item, ours, "this coin", subject)
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
    # BIP-174: the previous transaction alone is enough.
    stated = item.witness_utxo or spent
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
    if not item.derivations:
        return found(
            FindingCode.ORIGINS_MISSING,
            "The origin of no key of this coin is included, so nothing says where in the vault it lies.",
            subject,
        )
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


def _claims(claimed: PsbtInput | PsbtOutput, ours: OurScript, what: str, subject: str) -> Iterator[Finding]:
    """What a PSBT leaves out is no claim: a device is given what is derived here."""
    if claimed.witness_script not in {None, ours.witness_script} or claimed.redeem_script is not None:
        yield found(
            FindingCode.WITNESS_SCRIPT_MISMATCH, f"The script given for {what} is not the vault's.", subject
        )
    if not claimed.derivations.items() <= ours.derivations.items():
        yield found(
            FindingCode.ORIGINS_MISMATCH,
            f"The keys given for {what}, or their paths, are not those of the vault.",
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


OP_RETURN = b"\x6a"
# Of outputs. One refuses already, and each is work: the others are payments without a finding.
MAX_FALSE_ORIGINS = 100


@dataclass(slots=True)
class OutputsSeen:
    payments: list[Payment] = field(default_factory=list)
    change: list[ProvenChange] = field(default_factory=list)
    op_returns: list[OpReturn] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    false_origins: int = 0


def inspect_outputs(psbt: Psbt, prover: Prover) -> OutputsSeen:
    seen = OutputsSeen()
    for index, output in enumerate(psbt.outputs):
        if output.script_pubkey.startswith(OP_RETURN):
            _data(index, output, prover.policy.network, seen)
        else:
            _money(index, output, prover, seen)
    if not psbt.outputs:
        seen.findings.append(
            found(FindingCode.NO_OUTPUTS, "The transaction pays nobody: all of it would be fee.")
        )
    carriers = [output for output in psbt.outputs if output.script_pubkey.startswith(OP_RETURN)]
    if len(carriers) > 1:
        seen.findings.append(
            found(FindingCode.OP_RETURN_MULTIPLE, "The transaction carries data in more than one output.")
        )
    return seen


def _data(index: int, output: PsbtOutput, network: Network, seen: OutputsSeen) -> None:
    subject = f"output {index}"
    data = parse_op_return(output.script_pubkey)
    if data is None:
        sentence = (
            "The data output is not exactly one push of at most 80 bytes; a device might not show all of it."
        )
        seen.findings.append(found(FindingCode.OP_RETURN_MALFORMED, sentence, subject))
        seen.payments.append(_payment(index, output, network))
        return
    if output.amount:
        seen.findings.append(
            found(FindingCode.OP_RETURN_BURNS, f"{output.amount} sat would be destroyed.", subject)
        )
    seen.op_returns.append(OpReturn(index, data, _token(data, subject, seen)))


def _token(data: bytes, subject: str, seen: OutputsSeen) -> Payload | None:
    try:
        return token_of(data)
    except InvalidToken as error:
        # On chain it would have no effect, and would be recorded as a failed call for ever.
        sentence = f"The data begins like a token's and is not valid: {error}"
        seen.findings.append(found(FindingCode.TOKEN_PAYLOAD_INVALID, sentence, subject))
        return None


def _money(index: int, output: PsbtOutput, prover: Prover, seen: OutputsSeen) -> None:
    ours = prover.prove(output.script_pubkey, output.derivations)
    if ours is None:
        seen.payments.append(_payment(index, output, prover.policy.network))
        if output.derivations and seen.false_origins < MAX_FALSE_ORIGINS:
            origins = list(_false_origins(index, output, prover))
            seen.false_origins += len(origins)
            seen.findings += origins
        kind = classify(output.script_pubkey)
        if kind is ScriptKind.P2A:
            seen.findings.append(_anchor(index, output.amount, prover.policy.network))
        if kind is ScriptKind.UNKNOWN:
            sentence = "The output pays a script of no known kind."
            seen.findings.append(found(FindingCode.UNKNOWN_OUTPUT_SCRIPT, sentence, f"output {index}"))
    else:
        place, address = ours.place, prover.policy.address(ours.place.chain, ours.place.index)
        seen.change.append(ProvenChange(index, output.amount, place.chain, place.index, address))
        seen.findings += _claims(output, ours, "the change", f"output {index}")
    if output.amount < dust_threshold(output.script_pubkey):
        sentence = f"{output.amount} sat are too few for nodes to pass the transaction on."
        seen.findings.append(found(FindingCode.DUST_OUTPUT, sentence, f"output {index}"))


def _anchor(index: int, amount: Sats, network: Network) -> Finding:
    """An anchor holds nothing, or what keeps it from being dust: for raising the fee it needs no more."""
    address = p2a_address(network)
    sentence = f"Anyone may take the {amount} sat of this output (P2A, {address}), and raise the fee with it."
    burns = amount > dust_threshold(P2A_SCRIPT)
    code = FindingCode.ANCHOR_BURNS if burns else FindingCode.ANCHOR_OUTPUT
    return found(code, sentence, f"output {index}")


def _payment(index: int, output: PsbtOutput, network: Network) -> Payment:
    address = encode_address(output.script_pubkey, network)
    return Payment(index, output.amount, output.script_pubkey, address)


def _false_origins(index: int, output: PsbtOutput, prover: Prover) -> Iterator[Finding]:
    subject = f"output {index}"
    if any(place.is_absurd for place in prover.claimed_places(output.derivations)):
        yield found(
            FindingCode.ABSURD_PATH,
            "The output is said to come back at an index where no wallet looks.",
            subject,
        )
    elif prover.is_named_in(output.derivations):
        other = other_wallet(output.script_pubkey, output.witness_script, output.derivations, prover)
        sentence = (
            "The output names keys of this vault's devices, and does not come back to it."
            if other is None
            else "The output does not come back here. It is said to be of another wallet with the same "
            f"keys: {other}. {ADVICE}"
        )
        yield found(FindingCode.FAKE_CHANGE, sentence, subject)


_COMPRESSED_BYTES = 33
# What helps: without origins beside it, an output is a payment, which every device shows.
ADVICE = (
    "A device that believes this might not show it. Make the transaction in a wallet that holds nothing "
    "but the descriptors of the "
    "coins that it spends (in Bitcoin Core: a wallet of its own, into which only they are imported)."
)


def other_wallet(
    script_pubkey: bytes, witness_script: bytes | None, derivations: Derivations, prover: Prover
) -> str | None:
    """What wallet the PSBT claims it for, in words; None where the key origins do not fit the script, or are
    false.

    That the script is of exactly the keys named is proven. That these keys lie at the paths named is proven
    where the paths lead into the policy's own accounts; of any other account of the same devices nothing is
    known here.
    """
    kind = _kind_of(script_pubkey, witness_script, derivations)
    if kind is None or not all(_may_be(key, origin, prover) for key, origin in derivations.items()):
        return None
    ours = {bytes(key.fingerprint) for key in policy_keys(prover.policy)}
    named = sorted(str(origin) for origin in derivations.values() if bytes(origin.fingerprint) in ours)
    return f"{kind} of {', '.join(named)}" if named else None


def _kind_of(script_pubkey: bytes, witness_script: bytes | None, derivations: Derivations) -> str | None:
    """Which script of exactly these keys it is."""
    if witness_script is not None:
        try:
            threshold, keys = parse_multisig_script(witness_script)
        except InvalidTransaction:
            return None
        fits = script_pubkey == p2wsh(witness_script) and set(keys) == set(derivations)
        return f"a {threshold}-of-{len(keys)} multisig" if fits else None
    if len(derivations) != 1:
        return None
    (key,) = derivations
    if len(key) != _COMPRESSED_BYTES:
        return None
    kinds = {
        p2wpkh(key): "a P2WPKH address",
        p2sh(hash160(p2wpkh(key))): "a P2SH-P2WPKH address",
        p2pkh(hash160(key)): "a P2PKH address",
    }
    return kinds.get(script_pubkey)


def _may_be(key: bytes, origin: KeyOrigin, prover: Prover) -> bool:
    """False where the key is said to lie in an account of the policy, and does not."""
    for place in prover.claimed_places({key: origin}):
        account = prover.policy.cosigner_for(origin.fingerprint)
        if (
            place.is_absurd
            or account is None
            or account.xpub.derive_public_key(place.chain, place.index) != key
        ):
            return False
    return True
