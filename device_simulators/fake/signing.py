"""Signatures of the played device: those that a real one gives, unless a fault is asked for."""

from device_simulators.faults import Faults
from device_simulators.seed import Seed
from multisig import SIGHASH_ALL, DerivationPath, Psbt, SighashCache, TxOut, hash160, message_hash, p2pkh
from multisig.proofs import proven_output


def sign(psbt: Psbt, wallet: Seed, faults: Faults) -> Psbt:
    """With every key of the wallet that an input names. The bridge lets no unsound PSBT come this far."""
    hashes = SighashCache(psbt.tx)
    chosen = set(range(len(psbt.inputs))) - faults.missing_signatures
    return psbt.with_signatures({at: _signatures(psbt, at, wallet, hashes, faults) for at in chosen})


def _signatures(
    psbt: Psbt, at: int, wallet: Seed, hashes: SighashCache, faults: Faults
) -> dict[bytes, bytes]:
    item = psbt.inputs[at]
    coin = proven_output(item)
    assert isinstance(coin, TxOut), "the bridge lets no other input pass"
    signatures = {}
    for key, origin in item.derivations.items():
        if origin.fingerprint != wallet.fingerprint or wallet.public_key(origin.path) != key:
            continue
        code = item.witness_script or p2pkh(hash160(key))
        digest = hashes.segwit_v0(at, code, coin.amount, SIGHASH_ALL)
        spoiled = at in faults.wrong_signatures
        signatures[key] = wallet.sign(origin.path, digest[::-1] if spoiled else digest) + bytes([SIGHASH_ALL])
    return signatures


def sign_message(wallet: Seed, text: str, path: DerivationPath) -> bytes:
    return wallet.sign_recoverable(path, message_hash(text))
