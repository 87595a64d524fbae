"""Signed messages that prove control of an address, and of coins (BIP-322, version 2.0.0).

Two virtual transactions, which can never be mined, stand for the proof. `to_spend` commits to the message and
has one output, with the script of the address. `to_sign` spends that output, and in a proof of funds also the
coins.
"""

from multisig.bip322.messages import MAX_MESSAGE_BYTES as MAX_MESSAGE_BYTES
from multisig.bip322.messages import MAX_SHOWN_CHARACTERS as MAX_SHOWN_CHARACTERS
from multisig.bip322.messages import ProofSignature as ProofSignature
from multisig.bip322.messages import Variant as Variant
from multisig.bip322.messages import require_showable as require_showable
from multisig.bip322.messages import signed_message_hash as signed_message_hash
from multisig.bip322.messages import to_sign as to_sign
from multisig.bip322.messages import to_spend as to_spend
from multisig.bip322.proof_psbts import MAX_COINS as MAX_COINS
from multisig.bip322.proof_psbts import build_proof as build_proof
from multisig.bip322.proof_psbts import finalise_proof as finalise_proof
from multisig.bip322.proof_psbts import inspect_proof as inspect_proof
from multisig.bip322.proof_psbts import is_proof as is_proof
from multisig.bip322.verifying import Consensus as Consensus
from multisig.bip322.verifying import NamedCoin as NamedCoin
from multisig.bip322.verifying import ProofState as ProofState
from multisig.bip322.verifying import ProofVerdict as ProofVerdict
from multisig.bip322.verifying import verify_message as verify_message
