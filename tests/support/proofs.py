"""Proofs of control, signed by the tests' signers."""

from collections.abc import Sequence

from multisig import CoinToSpend, ProvenSpend, Psbt, Vault
from multisig.bip322 import ProofSignature, build_proof, finalise_proof
from tests.support.wallets import ALICE, BOB, Signer

MESSAGE = "Vault 7 on 2026-11-27, asked for by the auditors."


def signed_proof(
    vault: Vault,
    coins: Sequence[CoinToSpend] = (),
    *,
    message: str = MESSAGE,
    signers: Sequence[Signer] = (ALICE, BOB),
) -> ProofSignature:
    return finalise_proof(ProvenSpend(signed_psbt(vault, coins, message=message, signers=signers), vault))


def signed_psbt(
    vault: Vault,
    coins: Sequence[CoinToSpend] = (),
    *,
    message: str = MESSAGE,
    signers: Sequence[Signer] = (ALICE, BOB),
) -> Psbt:
    psbt = build_proof(vault, message, 0, 0, coins).psbt
    for signer in signers:
        psbt = signer.sign(psbt)
    return psbt
