"""A proof as a PSBT (BIP-322, "PSBT creator" and "PSBT signer"): made for the devices of a vault, recognised,
inspected from its bytes and the policy that this machine holds, and finalised.

Every input carries its previous transaction and its output, as in a payment; that of the first input is
`to_spend`.
"""

from collections.abc import Sequence
from dataclasses import replace

from multisig.bip322.messages import (
    ProofSignature,
    Variant,
    burn,
    message_bytes,
    require_showable,
    to_sign,
    to_spend,
)
from multisig.builder import Built, CoinToSpend, spent_input
from multisig.errors import InvalidMessage, InvalidPsbt
from multisig.inspection import Finding, FindingCode, Inspection
from multisig.inspection.inputs_and_outputs import inspect_inputs
from multisig.inspection.model import ProofOfControl, ProvenCoin, found
from multisig.inspection.transaction import digest_of, inspect_keys
from multisig.network import Network
from multisig.proofs import Prover, Unproven, policy_keys, proven_output
from multisig.psbt import Psbt, PsbtInput, PsbtOutput
from multisig.signatures import ProvenSpend
from multisig.transaction import OutPoint, Transaction
from multisig.units import FeeRate, Sats
from multisig.vault import Policy

# A device takes seconds for each coin.
MAX_COINS = 250


def build_proof(
    policy: Policy, message: str, chain: int, index: int, coins: Sequence[CoinToSpend] = ()
) -> Built:
    """The unsigned PSBT of a proof that the policy controls its address at /chain/index, and these coins.

    Raises InvalidMessage for what a device cannot show; InvalidPath; InvalidPsbt as `built_psbt`, and for too
    many coins.
    """
    require_showable(message)
    if len({coin.outpoint for coin in coins}) != len(coins) or len(coins) > MAX_COINS:
        raise InvalidPsbt(f"A proof names each coin once, and at most {MAX_COINS}.")
    holder = to_spend(message, policy.script_pubkey(chain, index))
    spent = (CoinToSpend(OutPoint(holder.txid, 0), Sats(0), chain, index, holder), *coins)
    output = burn()
    psbt = Psbt(
        tx=to_sign(message, holder.outputs[0].script_pubkey, [coin.outpoint for coin in coins]),
        inputs=tuple(spent_input(policy, coin, sequence=0) for coin in spent),
        outputs=(PsbtOutput(amount=output.amount, script_pubkey=output.script_pubkey),),
        xpubs=tuple((key.xpub, key.origin) for key in policy_keys(policy)),
        signed_message=message_bytes(message),
    )
    raw = psbt.to_bytes()
    return Built(Psbt.parse(raw), raw)


def is_proof(psbt: Psbt) -> bool:
    """Whether a signer has to treat it as a message, and not as a payment (BIP-322, "PSBT signer").

    By the form of its transaction alone: a proof that claims to be a payment is still one.
    """
    return psbt.signed_message is not None and psbt.tx.outputs == (burn(),)


def finalise_proof(signed: ProvenSpend) -> ProofSignature:
    """The signature in its shortest form, without account keys and paths. Raises NotFinalisable."""
    final = signed.finalise()
    if len(final.inputs) == 1:
        return ProofSignature(Variant.SIMPLE, final.inputs[0].witness)
    return ProofSignature(Variant.FUNDS, _finalised(signed.psbt, final))


def _finalised(psbt: Psbt, final: Transaction) -> Psbt:
    inputs = tuple(
        PsbtInput(
            outpoint=item.outpoint,
            sequence=item.sequence,
            witness_utxo=item.witness_utxo,
            non_witness_utxo=item.non_witness_utxo,
            final_script_witness=txin.witness,
        )
        for item, txin in zip(psbt.inputs, final.inputs, strict=True)
    )
    return replace(psbt, inputs=inputs, xpubs=())


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
    coins = [(str(coin.outpoint), coin.amount, coin.address) for coin in proof.coins]
    shown = [[proof.message, proof.address], coins]
    return Inspection(
        network=network,
        txid=psbt.tx.txid,
        inputs=ins.inputs,
        payments=(),
        change=(),
        op_returns=(),
        total_in=ins.total,
        total_out=Sats(0),
        fee=Sats(0),
        fee_rate=FeeRate(0),
        vsize=0,
        version=psbt.tx.version,
        locktime=psbt.tx.locktime,
        locktime_holds=psbt.tx.locktime_holds,
        signals_rbf=False,
        findings=findings,
        digest=digest_of("multisig-proof-v1", psbt, policy, network, shown, findings),
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
