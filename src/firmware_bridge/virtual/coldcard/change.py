"""Which outputs come back to the wallet. Whoever claims change and cannot show it is treated as a fraud."""

from collections.abc import Iterable

from firmware_bridge.virtual.coldcard.errors import ScriptMismatch, TransactionRefused
from firmware_bridge.virtual.coldcard.wallet import Wallet
from firmware_bridge.virtual.seed import Seed
from multisig import HARDENED, DerivationPath, PsbtOutput, ScriptKind, classify, p2wpkh, p2wsh

# How far past the highest index among the inputs a change address may lie before the device warns.
MAX_GAP = 200


def is_change(index: int, output: PsbtOutput, seed: Seed, wallet: Wallet | None) -> bool:
    """Does this output pay the wallet that is being spent from?

    An output that names none of our keys is a payment. One that does must be change down to the last byte: raises
    TransactionRefused otherwise.
    """
    if not own_paths(output, seed):
        return False
    kind = classify(output.script_pubkey)
    if kind is ScriptKind.P2WPKH:
        _check_single_key(index, output)
    elif kind is not ScriptKind.P2WSH or not _check_multisig(index, output, wallet):
        return False
    _check_seed(index, output, seed)
    return True


def own_paths(output: PsbtOutput, seed: Seed) -> dict[bytes, DerivationPath]:
    """The keys that the output says are this device's, with their paths."""
    return {
        key: origin.path
        for key, origin in output.derivations.items()
        if origin.fingerprint == seed.fingerprint
    }


def _check_single_key(index: int, output: PsbtOutput) -> None:
    if len(output.derivations) != 1 or output.script_pubkey != p2wpkh(next(iter(output.derivations))):
        raise _fraud(index, "Change output is fraudulent")


def _check_multisig(index: int, output: PsbtOutput, wallet: Wallet | None) -> bool:
    """False where the output may belong to a wallet that is not in play: it is then shown as a payment."""
    if output.witness_script is None:
        raise TransactionRefused(f"Missing redeem/witness script for multisig output #{index}")
    if wallet is None:
        return False
    try:
        wallet.check_script(output.witness_script, output.derivations)
    except ScriptMismatch as error:
        raise _fraud(index, f"P2WSH or P2SH change output script: {error}") from error
    if output.script_pubkey != p2wsh(output.witness_script):
        raise _fraud(index, "P2WSH witness script has wrong hash")
    return True


def _check_seed(index: int, output: PsbtOutput, seed: Seed) -> None:
    if not any(seed.public_key(path) == key for key, path in own_paths(output, seed).items()):
        raise _fraud(index, "Deception regarding change output. BIP-32 path doesn't match actual address.")


def _fraud(index: int, what: str) -> TransactionRefused:
    return TransactionRefused(f"Output#{index}: {what}")


def path_warnings(spent: Iterable[DerivationPath], change: Iterable[tuple[int, DerivationPath]]) -> list[str]:
    """Change that is really ours but lies where nobody would look for it: the ransom attack (S9).

    `spent` are our paths among the inputs, `change` the output indexes with our paths there.
    """
    paths = [tuple(path) for path in spent]
    if not paths or len({len(path) for path in paths}) != 1 or len(paths[0]) <= 2:
        return []  # the firmware too has no opinion where the inputs follow no common pattern
    limit = max(path[-1] & ~HARDENED for path in paths) + MAX_GAP
    return [
        f"Output#{index}: change goes to an unusual place: {path}: {trouble}"
        for index, path in change
        if (trouble := _trouble(tuple(path), paths[0], limit))
    ]


def _trouble(path: tuple[int, ...], model: tuple[int, ...], limit: int) -> str:
    if len(path) != len(model):
        return f"has wrong path length ({len(path)} not {len(model)})"
    if [step & HARDENED for step in path] != [step & HARDENED for step in model]:
        return "has different hardening pattern"
    if path[:-2] != model[:-2]:
        return "goes to diff path prefix"
    if path[-2] & ~HARDENED not in {0, 1}:
        return "2nd last component not 0 or 1"
    return "last component beyond reasonable gap" if path[-1] & ~HARDENED > limit else ""
