"""Signed messages that prove control of an address, and of coins (BIP-322, version 2.0.0).

Two virtual transactions, which can never be mined, stand for the proof. `to_spend` commits to the message and
has one output, with the script of the address. `to_sign` spends that output, and in a proof of funds also the
coins.
"""

from multisig.bip322.messages import (
    MAX_MESSAGE_BYTES,
    MAX_SHOWN_CHARACTERS,
    ProofSignature,
    Variant,
    require_showable,
    signed_message_hash,
    to_sign,
    to_spend,
)
from multisig.bip322.proof_psbts import MAX_COINS, build_proof, finalise_proof, inspect_proof, is_proof
from multisig.bip322.verifying import Consensus, NamedCoin, ProofState, ProofVerdict, verify_message

__all__ = [
    "MAX_COINS",
    "MAX_MESSAGE_BYTES",
    "MAX_SHOWN_CHARACTERS",
    "Consensus",
    "NamedCoin",
    "ProofSignature",
    "ProofState",
    "ProofVerdict",
    "Variant",
    "build_proof",
    "finalise_proof",
    "inspect_proof",
    "is_proof",
    "require_showable",
    "signed_message_hash",
    "to_sign",
    "to_spend",
    "verify_message",
]
