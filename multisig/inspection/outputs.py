"""Inspects outputs: payments, proven change, data, and false claims of change."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from multisig.address import encode_address
from multisig.errors import InvalidToken
from multisig.inspection.model import Change, Finding, FindingCode, OpReturn, Payment, found
from multisig.inspection.other_wallets import ADVICE, other_wallet
from multisig.network import Network
from multisig.proofs import OurScript, Prover
from multisig.psbt import Psbt, PsbtOutput
from multisig.script import ScriptKind, classify, dust_threshold, parse_op_return
from multisig.tokens.payload import Payload, token_of

OP_RETURN = b"\x6a"


@dataclass(slots=True)
class OutputsSeen:
    payments: list[Payment] = field(default_factory=list)
    change: list[Change] = field(default_factory=list)
    op_returns: list[OpReturn] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


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
    network = prover.policy.network
    ours = prover.prove(output.script_pubkey, output.derivations)
    if ours is None:
        seen.payments.append(_payment(index, output, network))
        seen.findings += _pretending(index, output, prover)
    else:
        place, address = ours.place, prover.policy.address(ours.place.chain, ours.place.index)
        seen.change.append(Change(index, output.amount, place.chain, place.index, address))
        seen.findings += _claims_about_change(index, output, ours)
    if output.amount < dust_threshold(output.script_pubkey):
        sentence = f"{output.amount} sat are too few for nodes to pass the transaction on."
        seen.findings.append(found(FindingCode.DUST_OUTPUT, sentence, f"output {index}"))


def _payment(index: int, output: PsbtOutput, network: Network) -> Payment:
    address = encode_address(output.script_pubkey, network)
    return Payment(index, output.amount, output.script_pubkey, address)


def _pretending(index: int, output: PsbtOutput, prover: Prover) -> Iterator[Finding]:
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
            "The output is said to come back to this vault, but does not."
            if other is None
            else "The output does not come back here. It is said to be of another wallet with the same "
            f"keys: {other}. {ADVICE}"
        )
        yield found(FindingCode.FAKE_CHANGE, sentence, subject)
    if classify(output.script_pubkey) is ScriptKind.UNKNOWN:
        yield found(FindingCode.UNKNOWN_OUTPUT_SCRIPT, "The output pays a script of no known kind.", subject)


def _claims_about_change(index: int, output: PsbtOutput, ours: OurScript) -> Iterator[Finding]:
    subject = f"output {index}"
    if output.witness_script != ours.witness_script or output.redeem_script is not None:
        yield found(
            FindingCode.WITNESS_SCRIPT_MISMATCH,
            "The script given for this change is missing, or is not the vault's.",
            subject,
        )
    if output.derivations != ours.derivations:
        yield found(
            FindingCode.ORIGINS_MISMATCH,
            "The keys given for this change, or their paths, are not those of the vault.",
            subject,
        )
