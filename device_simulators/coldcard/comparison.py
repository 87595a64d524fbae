"""How a wallet that is to be enrolled compares with those on record. Source: `has_similar` in the firmware's `multisig.py`."""

from dataclasses import dataclass

from device_simulators.coldcard.releases import Release
from device_simulators.coldcard.wallet import Wallet
from device_simulators.coldcard.wallet_store import WalletStore

_NEW = "Create new multisig wallet?"
_RENAMED = "Update NAME only of existing multisig wallet?"
_SAME = "All details are the same as existing!"
_NAME_TAKEN = "Name already exists."
_SIMILAR = (
    "WARNING: This new wallet is similar to an existing wallet, but will NOT replace it. "
    "Consider deleting previous wallet first. Differences: "
)


@dataclass(frozen=True)
class Comparison:
    """`remark` is the screen's first line. A `duplicate` is shown, and no button keeps it."""

    remark: str
    duplicate: bool = False


def compare(wallet: Wallet, store: WalletStore, release: Release) -> Comparison:
    origins = [key.origin for key in wallet.cosigners]
    known = store.find(wallet.threshold, origins)
    if known is not None and not known.same_keys(wallet):
        return Comparison(_SIMILAR + "xpubs")
    if release.unique_names and store.has_name(wallet.name, beside=known):
        return _duplicate(_NAME_TAKEN)
    if known is not None:
        renamed = known.name != wallet.name and not release.unique_names
        return Comparison(_RENAMED) if renamed else _duplicate(_SAME)
    similar = store.candidates(origins)
    return Comparison(_SIMILAR + _differences(wallet, similar, release) if similar else _NEW)


def _duplicate(why: str) -> Comparison:
    return Comparison(f"Duplicate wallet. {why}", duplicate=True)


def _differences(wallet: Wallet, similar: list[Wallet], release: Release) -> str:
    """In a fixed order; the firmware's is that of a set."""
    names = any(other.name != wallet.name for other in similar) and not release.unique_names
    keys = any(other.cosigners != wallet.cosigners for other in similar)
    return ", ".join(
        word for word, differs in (("M differs", True), ("name", names), ("xpubs", keys)) if differs
    )
