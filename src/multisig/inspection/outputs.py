"""Where the money goes: payments, proven change, data, and outputs that pretend."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from multisig.address import encode_address
from multisig.inspection.findings import Finding, FindingCode, found
from multisig.inspection.model import Change, OpReturn, Payment
from multisig.proofs import (
    Place,
    claimed_places,
    claims_policy,
    is_absurd,
    policy_witness_script,
    prove_ours,
)
from multisig.psbt import Psbt, PsbtOutput
from multisig.script import ScriptKind, classify, dust_threshold, parse_op_return
from multisig.vault import Policy

OP_RETURN = b"\x6a"


@dataclass(slots=True)
class OutputsSeen:
    payments: list[Payment] = field(default_factory=list)
    change: list[Change] = field(default_factory=list)
    op_returns: list[OpReturn] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def inspect_outputs(psbt: Psbt, policy: Policy) -> OutputsSeen:
    seen = OutputsSeen()
    for index, output in enumerate(psbt.outputs):
        if output.script_pubkey.startswith(OP_RETURN):
            _data(index, output, policy, seen)
        else:
            _money(index, output, policy, seen)
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


def _data(index: int, output: PsbtOutput, policy: Policy, seen: OutputsSeen) -> None:
    subject = f"output {index}"
    data = parse_op_return(output.script_pubkey)
    if data is None:
        sentence = (
            "The data output is not exactly one push of at most 80 bytes; a device might not show all of it."
        )
        seen.findings.append(found(FindingCode.OP_RETURN_MALFORMED, sentence, subject))
        seen.payments.append(_payment(index, output, policy))
        return
    if output.amount:
        seen.findings.append(
            found(FindingCode.OP_RETURN_BURNS, f"{output.amount} sat would be destroyed.", subject)
        )
    seen.op_returns.append(OpReturn(index, data))


def _money(index: int, output: PsbtOutput, policy: Policy, seen: OutputsSeen) -> None:
    place = prove_ours(policy, output.script_pubkey, output.derivations)
    if place is None:
        seen.payments.append(_payment(index, output, policy))
        seen.findings += _pretending(index, output, policy)
    else:
        address = policy.address(place.chain, place.index)
        seen.change.append(Change(index, output.amount, place.chain, place.index, address))
        seen.findings += _claims_about_change(index, output, policy, place)
    if output.amount < dust_threshold(output.script_pubkey):
        sentence = f"{output.amount} sat are too few for nodes to pass the transaction on."
        seen.findings.append(found(FindingCode.DUST_OUTPUT, sentence, f"output {index}"))


def _payment(index: int, output: PsbtOutput, policy: Policy) -> Payment:
    address = encode_address(output.script_pubkey, policy.network)
    return Payment(index, output.amount, output.script_pubkey, address)


def _pretending(index: int, output: PsbtOutput, policy: Policy) -> Iterator[Finding]:
    subject = f"output {index}"
    if any(is_absurd(place) for place in claimed_places(policy, output.derivations)):
        yield found(
            FindingCode.ABSURD_PATH,
            "The output is said to come back at an index where no wallet looks.",
            subject,
        )
    elif claims_policy(policy, output.derivations):
        yield found(
            FindingCode.FAKE_CHANGE, "The output is said to come back to this vault, but does not.", subject
        )
    if classify(output.script_pubkey) is ScriptKind.UNKNOWN:
        yield found(FindingCode.UNKNOWN_OUTPUT_SCRIPT, "The output pays a script of no known kind.", subject)


def _claims_about_change(index: int, output: PsbtOutput, policy: Policy, place: Place) -> Iterator[Finding]:
    subject = f"output {index}"
    if output.witness_script != policy_witness_script(policy, place) or output.redeem_script is not None:
        yield found(
            FindingCode.WITNESS_SCRIPT_MISMATCH,
            "The script given for this change is missing, or is not the vault's.",
            subject,
        )
    if output.derivations != policy.derivations(place.chain, place.index):
        yield found(
            FindingCode.ORIGINS_MISMATCH,
            "The keys given for this change, or their paths, are not those of the vault.",
            subject,
        )
