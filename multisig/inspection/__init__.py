"""What a transaction does to a vault, from the bytes of the PSBT and the policy that this machine holds.

`inspect` never raises for what a PSBT contains, however hostile. What is wrong becomes findings; one with
severity REFUSE makes `Inspection.ok` false.
"""

from dataclasses import fields
from typing import Any

from multisig.builder import estimate_vsize
from multisig.inspection.inputs_and_outputs import InputsSeen, OutputsSeen, inspect_inputs, inspect_outputs
from multisig.inspection.model import Finding as Finding
from multisig.inspection.model import FindingCode as FindingCode
from multisig.inspection.model import InspectedInput as InspectedInput
from multisig.inspection.model import Inspection as Inspection
from multisig.inspection.model import OpReturn as OpReturn
from multisig.inspection.model import Payment as Payment
from multisig.inspection.model import ProofOfControl as ProofOfControl
from multisig.inspection.model import ProvenChange as ProvenChange
from multisig.inspection.model import ProvenCoin as ProvenCoin
from multisig.inspection.model import Severity as Severity
from multisig.inspection.transaction import FeeLimits as FeeLimits
from multisig.inspection.transaction import Totals, digest_of, inspect_transaction, signals_rbf
from multisig.network import Network
from multisig.proofs import Prover
from multisig.psbt import Psbt
from multisig.tokens.payload import Payload
from multisig.units import Sats
from multisig.vault import Policy

_DEFAULT_LIMITS = FeeLimits()


def inspect(
    psbt: Psbt, policy: Policy, *, network: Network, limits: FeeLimits = _DEFAULT_LIMITS
) -> Inspection:
    """Inspect a PSBT against a policy, on the network that the caller expects."""
    prover = Prover(policy)
    ins, outs = inspect_inputs(psbt, prover), inspect_outputs(psbt, prover)
    totals = _totals(psbt, policy, ins)
    findings = (*ins.findings, *outs.findings, *inspect_transaction(psbt, policy, network, totals, limits))
    shown = _shown(ins, outs, totals)
    return Inspection(
        network=network,
        txid=psbt.tx.txid,
        inputs=ins.inputs,
        payments=tuple(outs.payments),
        change=tuple(outs.change),
        op_returns=tuple(outs.op_returns),
        total_in=totals.total_in,
        total_out=totals.total_out,
        fee=totals.fee,
        fee_rate=totals.fee_rate,
        vsize=totals.vsize,
        version=psbt.tx.version,
        locktime=psbt.tx.locktime,
        locktime_holds=psbt.tx.locktime_holds,
        signals_rbf=signals_rbf(psbt),
        findings=findings,
        digest=digest_of("multisig-inspection-v1", psbt, policy, network, shown, findings),
    )


def _totals(psbt: Psbt, policy: Policy, ins: InputsSeen) -> Totals:
    scripts = [output.script_pubkey for output in psbt.outputs]
    return Totals(
        total_in=ins.total,
        total_out=Sats(sum(output.amount for output in psbt.outputs)),
        vsize=estimate_vsize(policy, len(psbt.inputs), scripts),
    )


def _shown(ins: InputsSeen, outs: OutputsSeen, totals: Totals) -> list[Any]:
    # Without who has signed so far: another signer's signature must not undo an approval.
    return [
        [(item.amount, item.chain, item.address_index) for item in ins.inputs],
        [(item.output_index, item.address) for item in outs.payments],
        [(item.output_index, item.chain, item.index) for item in outs.change],
        [(item.output_index, item.data.hex(), *_meaning(item.token)) for item in outs.op_returns],
        [totals.fee, totals.vsize],
    ]


def _meaning(token: Payload | None) -> list[Any]:
    """The decoded token payload, for the digest; empty for other data, whose digests stay as they were."""
    if token is None:
        return []
    values = (getattr(token, member.name) for member in fields(token))
    return [type(token).__name__, *(v.hex() if isinstance(v, bytes) else v for v in values)]
