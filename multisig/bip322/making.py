"""A proof as a PSBT for the devices of a vault, and the signature made of the signed PSBT (BIP-322, "PSBT
creator").

Every input carries its previous transaction and its output, as in a payment; that of the first input is
`to_spend`.
"""

from collections.abc import Sequence
from dataclasses import replace

from multisig.bip322.encoding import ProofSignature, Variant
from multisig.bip322.transactions import burn, message_bytes, require_showable, to_sign, to_spend
from multisig.builder import Built, CoinToSpend, spent_input
from multisig.errors import InvalidPsbt
from multisig.proofs import policy_keys
from multisig.psbt import Psbt, PsbtInput, PsbtOutput
from multisig.signatures import ProvenSpend
from multisig.transaction import OutPoint, Transaction
from multisig.units import Sats
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
