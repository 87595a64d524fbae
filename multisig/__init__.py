"""Pure Bitcoin multisig: no I/O, no clock, no randomness."""

from importlib import import_module
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multisig.builder import Built as Built
    from multisig.builder import ChangeTo as ChangeTo
    from multisig.builder import CoinToSpend as CoinToSpend
    from multisig.builder import build_psbt as build_psbt
    from multisig.builder import built_psbt as built_psbt
    from multisig.builder import estimate_vsize as estimate_vsize
    from multisig.builder import input_weight as input_weight
    from multisig.builder import output_weight as output_weight
    from multisig.builder import vault_input_weight as vault_input_weight
    from multisig.coordinator_files import read_vault_file as read_vault_file
    from multisig.descriptor import SortedMulti as SortedMulti
    from multisig.descriptor import checksum as checksum
    from multisig.ecdsa import message_hash as message_hash
    from multisig.ecdsa import recover_message_key as recover_message_key
    from multisig.ecdsa import signature_fault as signature_fault
    from multisig.ecdsa import verify_ecdsa as verify_ecdsa
    from multisig.errors import BadSignature as BadSignature
    from multisig.errors import ForeignSignature as ForeignSignature
    from multisig.errors import InvalidAddress as InvalidAddress
    from multisig.errors import InvalidAmount as InvalidAmount
    from multisig.errors import InvalidDescriptor as InvalidDescriptor
    from multisig.errors import InvalidKey as InvalidKey
    from multisig.errors import InvalidMessage as InvalidMessage
    from multisig.errors import InvalidPath as InvalidPath
    from multisig.errors import InvalidPsbt as InvalidPsbt
    from multisig.errors import InvalidToken as InvalidToken
    from multisig.errors import InvalidTransaction as InvalidTransaction
    from multisig.errors import MultisigError as MultisigError
    from multisig.errors import NotFinalisable as NotFinalisable
    from multisig.errors import PsbtMismatch as PsbtMismatch
    from multisig.errors import PsbtTooLarge as PsbtTooLarge
    from multisig.errors import WrongNetwork as WrongNetwork
    from multisig.hashes import hash160 as hash160
    from multisig.hashes import sha256 as sha256
    from multisig.hashes import sha256d as sha256d
    from multisig.inspection import FeeLimits as FeeLimits
    from multisig.inspection import Finding as Finding
    from multisig.inspection import FindingCode as FindingCode
    from multisig.inspection import InspectedInput as InspectedInput
    from multisig.inspection import Inspection as Inspection
    from multisig.inspection import OpReturn as OpReturn
    from multisig.inspection import Payment as Payment
    from multisig.inspection import ProvenChange as ProvenChange
    from multisig.inspection import Severity as Severity
    from multisig.inspection import inspect as inspect
    from multisig.keys import HARDENED as HARDENED
    from multisig.keys import DerivationPath as DerivationPath
    from multisig.keys import ExtendedPublicKey as ExtendedPublicKey
    from multisig.keys import Fingerprint as Fingerprint
    from multisig.keys import KeyOrigin as KeyOrigin
    from multisig.keys import OriginKey as OriginKey
    from multisig.network import Network as Network
    from multisig.network import NetworkKind as NetworkKind
    from multisig.psbt import Psbt as Psbt
    from multisig.psbt import PsbtInput as PsbtInput
    from multisig.psbt import PsbtLimits as PsbtLimits
    from multisig.psbt import PsbtOutput as PsbtOutput
    from multisig.psbt import ReceivedPsbt as ReceivedPsbt
    from multisig.psbt import to_version_2 as to_version_2
    from multisig.script import MAX_COSIGNERS as MAX_COSIGNERS
    from multisig.script import MAX_OP_RETURN_BYTES as MAX_OP_RETURN_BYTES
    from multisig.script import ScriptKind as ScriptKind
    from multisig.script import classify as classify
    from multisig.script import decode_address as decode_address
    from multisig.script import dust_threshold as dust_threshold
    from multisig.script import encode_address as encode_address
    from multisig.script import ends_of as ends_of
    from multisig.script import multisig_script as multisig_script
    from multisig.script import op_return_script as op_return_script
    from multisig.script import p2pkh as p2pkh
    from multisig.script import p2sh as p2sh
    from multisig.script import p2tr as p2tr
    from multisig.script import p2wpkh as p2wpkh
    from multisig.script import p2wsh as p2wsh
    from multisig.script import parse_multisig_script as parse_multisig_script
    from multisig.script import parse_op_return as parse_op_return
    from multisig.script import resembled as resembled
    from multisig.signatures import InputSignatures as InputSignatures
    from multisig.signatures import ProvenSpend as ProvenSpend
    from multisig.signatures import SignatureReport as SignatureReport
    from multisig.signatures import SignerProgress as SignerProgress
    from multisig.signatures import accept_signatures as accept_signatures
    from multisig.signatures import combine as combine
    from multisig.signatures import finalise as finalise
    from multisig.signatures import progress as progress
    from multisig.signatures import progress_of as progress_of
    from multisig.signatures import signed_by as signed_by
    from multisig.signatures import signer_progress as signer_progress
    from multisig.signatures import verify_signatures as verify_signatures
    from multisig.transaction import SIGHASH_ALL as SIGHASH_ALL
    from multisig.transaction import OutPoint as OutPoint
    from multisig.transaction import RelativeLock as RelativeLock
    from multisig.transaction import SighashCache as SighashCache
    from multisig.transaction import Transaction as Transaction
    from multisig.transaction import TxIn as TxIn
    from multisig.transaction import TxOut as TxOut
    from multisig.transaction import relative_lock as relative_lock
    from multisig.units import MAX_MONEY as MAX_MONEY
    from multisig.units import FeeRate as FeeRate
    from multisig.units import Sats as Sats
    from multisig.units import format_btc as format_btc
    from multisig.units import parse_btc as parse_btc
    from multisig.units import sats as sats
    from multisig.vault import CHANGE as CHANGE
    from multisig.vault import MAX_INDEX as MAX_INDEX
    from multisig.vault import RECEIVE as RECEIVE
    from multisig.vault import Policy as Policy
    from multisig.vault import Profile as Profile
    from multisig.vault import Vault as Vault
    from multisig.vault import multisig_account_path as multisig_account_path
    from multisig.vault import profile_account_path as profile_account_path
    from multisig.vault_files import bsms_record as bsms_record
    from multisig.vault_files import vault_of_psbt as vault_of_psbt
    from multisig.vault_files import wallet_policy as wallet_policy
else:
    # Each after those that it needs.
    _MODULES = (
        *("errors", "hashes", "network", "units", "keys", "script", "transaction", "ecdsa", "descriptor"),
        *("vault", "psbt", "signatures", "builder", "inspection", "vault_files", "coordinator_files"),
    )

    def __getattr__(name: str) -> Any:
        """Loads no more than the modules up to the one that has the public name: a command that starts anew
        for each question needs few. A module of this package is imported by its own name.
        """
        if PathFinder.find_spec(f"{__name__}.{name}", __path__) is None:
            for each in _MODULES:
                module = import_module(f"{__name__}.{each}")
                if name in vars(module):
                    globals()[name] = vars(module)[name]
                    return globals()[name]
        raise AttributeError(f"{__name__} has no {name}")
