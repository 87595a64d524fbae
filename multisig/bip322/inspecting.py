"""Inspects the PSBT of a signed message, from its bytes and the policy that this machine holds."""

import hashlib
import json
from typing import Any

from multisig.bip322.transactions import require_showable, to_sign, to_spend
from multisig.errors import InvalidMessage
from multisig.inspection import Finding, FindingCode, Inspection
from multisig.inspection.inputs import inspect_inputs
from multisig.inspection.model import ProofOfControl, ProvenCoin, found
from multisig.inspection.transaction import inspect_keys
from multisig.network import Network
from multisig.proofs import Prover, Unproven, policy_keys, policy_threshold, proven_output
from multisig.psbt import Psbt
from multisig.units import FeeRate, Sats
from multisig.vault import Policy


def inspect_proof(psbt: Psbt, policy: Policy, *, network: Network) -> Inspection:
    """As `inspect`, of a PSBT that asks for a signed message. What is wrong becomes findings, which refuse.

    The transaction has to be, byte for byte, the one that BIP-322 makes of the message, an address of the
    policy and coins of the policy. It pays nothing, and its first input spends what does not exist: no node
    can ever take it. `total_in` is what the coins hold; the fee is 0, for none is ever paid.
    """
    prover = Prover(policy)
    ins = inspect_inputs(psbt, prover)
    message, wrong = _message(psbt)
    findings = (*ins.findings, *inspect_keys(psbt, policy, network), *wrong, *_form(psbt, message))
    proof = ProofOfControl(message, *_coins(psbt, prover))
    return Inspection(
        network=network,
        txid=psbt.tx.txid,
        inputs=ins.inputs,
        payments=(),
        change=(),
        op_returns=(),
        total_in=Sats(sum(item.amount for item in ins.inputs)),
        total_out=Sats(0),
        fee=Sats(0),
        fee_rate=FeeRate(0),
        vsize=0,
        locktime=psbt.tx.locktime,
        signals_rbf=False,
        findings=findings,
        digest=_digest(psbt, policy, network, proof, findings),
        proof=proof,
    )


def _coins(psbt: Psbt, prover: Prover) -> tuple[str, tuple[ProvenCoin, ...]]:
    """The address that signs, and the coins of a proof of funds; empty where one is not proven to be ours."""
    proven = []
    for item in psbt.inputs:
        output = proven_output(item)
        if isinstance(output, Unproven):
            return "", ()
        ours = prover.prove(output.script_pubkey, item.derivations)
        if ours is None:
            return "", ()
        address = prover.policy.address(ours.place.chain, ours.place.index)
        proven.append(ProvenCoin(item.outpoint, output.amount, address))
    return proven[0].address, tuple(proven[1:])


def _message(psbt: Psbt) -> tuple[str, tuple[Finding, ...]]:
    try:
        message = (psbt.signed_message or b"").decode("utf-8")
        require_showable(message)
    except UnicodeDecodeError:
        return "", (found(FindingCode.MESSAGE_NOT_SHOWABLE, "The message is not text."),)
    except InvalidMessage as error:
        return "", (found(FindingCode.MESSAGE_NOT_SHOWABLE, str(error)),)
    return message, ()


def _form(psbt: Psbt, message: str) -> tuple[Finding, ...]:
    holder = psbt.inputs[0].non_witness_utxo
    if holder is not None and holder.outputs:
        challenge = holder.outputs[0].script_pubkey
        others = [item.outpoint for item in psbt.inputs[1:]]
        if holder == to_spend(message, challenge) and psbt.tx == to_sign(message, challenge, others):
            return ()
    sentence = "The transaction is not the one that stands for this message: it could be a payment."
    return (found(FindingCode.NOT_A_PROOF, sentence),)


def _digest(
    psbt: Psbt, policy: Policy, network: Network, proof: ProofOfControl, findings: tuple[Finding, ...]
) -> str:
    shown: list[Any] = [
        "multisig-proof-v1",
        psbt.tx.serialize(include_witness=False).hex(),
        [network, policy_threshold(policy), *(str(key) for key in policy_keys(policy))],
        [proof.message, proof.address],
        [(str(coin.outpoint), coin.amount, coin.address) for coin in proof.coins],
        [(item.code, item.subject, item.sentence) for item in findings],
    ]
    text = json.dumps(shown, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
