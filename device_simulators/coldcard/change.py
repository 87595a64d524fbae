"""Which outputs come back to the wallet. A claim of change that cannot be verified is treated as fraud."""

from collections.abc import Iterable
from dataclasses import dataclass

from device_simulators.coldcard.replies import ChangeFraud, ScriptMismatch, TransactionRefused
from device_simulators.coldcard.wallet import Wallet
from device_simulators.seed import Seed
from multisig import HARDENED, DerivationPath, PsbtOutput, ScriptKind, classify, p2wpkh, p2wsh

# How far past the highest index among the inputs a change address may lie before the device warns.
MAX_GAP = 200


@dataclass(frozen=True)
class Source:
    """Where the coins come from: the one kind of coin that is spent (None: several), and its wallet if
    multisig.
    """

    kind: ScriptKind | None
    wallet: Wallet | None


def is_change(index: int, output: PsbtOutput, seed: Seed, source: Source) -> bool:
    """Whether the output returns to the wallet whose coins are spent.

    An output that names none of our keys, or is of another kind than the coins spent, is a payment, even to
    ourselves. One that claims to come back must do so down to the last byte: raises TransactionRefused
    otherwise.
    """
    kind = classify(output.script_pubkey)
    if not own_paths(output, seed) or kind is not source.kind:
        return False
    if kind is ScriptKind.P2WSH:
        assert source.wallet is not None, "multisig coins were matched with their wallet"
        _check_multisig(index, output, source.wallet)
    else:
        _check_single_key(index, output)
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


def _check_multisig(index: int, output: PsbtOutput, wallet: Wallet) -> None:
    if output.witness_script is None:
        raise TransactionRefused(f"Missing redeem/witness script for multisig output #{index}")
    try:
        wallet.check_script(output.witness_script, output.derivations)
    except ScriptMismatch as error:
        raise _fraud(index, f"P2WSH or P2SH change output script: {error}") from error
    if output.script_pubkey != p2wsh(output.witness_script):
        raise _fraud(index, "P2WSH witness script has wrong hash")


def _check_seed(index: int, output: PsbtOutput, seed: Seed) -> None:
    if not any(seed.public_key(path) == key for key, path in own_paths(output, seed).items()):
        raise _fraud(index, "Deception regarding change output. BIP-32 path doesn't match actual address.")


def _fraud(index: int, what: str) -> ChangeFraud:
    return ChangeFraud(f"Output#{index}: {what}")


def path_warnings(spent: Iterable[DerivationPath], change: Iterable[tuple[int, DerivationPath]]) -> list[str]:
    """Change that is really ours but lies where no wallet would look for it: the ransom attack (S9).

    `spent` are our paths among the inputs, `change` the output indexes with our paths there.
    """
    paths = [tuple(path) for path in spent]
    if not paths or len({len(path) for path in paths}) != 1 or len(paths[0]) <= 2:
        return []  # nor does the firmware warn where the inputs follow no common pattern
    limit = max(path[-1] & ~HARDENED for path in paths) + MAX_GAP
    prefix = f"{DerivationPath(paths[0][:-2])}/{{0~1}}/{{0~{limit}}}"
    return [
        f"Troublesome Change Outs: Output#{index}: {trouble}: {path} not {prefix} expected"
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
