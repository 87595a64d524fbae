"""Which wallet a transaction belongs to, as far as the xpubs that it brings along say (BIP-174, PSBT_GLOBAL_XPUB)."""

from dataclasses import dataclass

from device_simulators.coldcard.errors import CommandRefused, TransactionRefused
from device_simulators.coldcard.wallet import Wallet
from device_simulators.coldcard.wallet_file import check_membership
from device_simulators.coldcard.wallet_store import WalletStore, XpubPolicy
from device_simulators.seed import Seed
from multisig import MultisigError, OriginKey, Psbt, parse_multisig_script

INVALID = "Invalid PSBT"  # all that the firmware says over the wire when one of its assertions fails


@dataclass(frozen=True)
class Choice:
    """`wallet` is None where the transaction names none. `needs_approval`: not on record, the person is to be asked."""

    wallet: Wallet | None
    needs_approval: bool = False


def choose_wallet(psbt: Psbt, seed: Seed, store: WalletStore, policy: XpubPolicy) -> Choice:
    """Raises TransactionRefused in the firmware's words."""
    if not psbt.xpubs:
        return Choice(None)
    keys = tuple(OriginKey(origin, xpub) for xpub, origin in psbt.xpubs)
    if not any(key.fingerprint == seed.fingerprint for key in keys):
        raise TransactionRefused("My XFP not involved")
    known = _known(psbt, keys, store)
    if known is not None:
        if frozenset(known.cosigners) != frozenset(keys):
            raise TransactionRefused(INVALID)
        return Choice(known)
    threshold = _guess_threshold(psbt, len(keys))
    if threshold is None:
        return Choice(None)
    return _propose(threshold, keys, seed, store, policy)


def _known(psbt: Psbt, keys: tuple[OriginKey, ...], store: WalletStore) -> Wallet | None:
    """One wallet with these fingerprints and paths, or of several the one with the script's threshold."""
    candidates = store.candidates(key.origin for key in keys)
    if len(candidates) == 1:
        return candidates[0]
    threshold = _guess_threshold(psbt, len(keys))
    return next((wallet for wallet in candidates if wallet.threshold == threshold), None)


def _guess_threshold(psbt: Psbt, count: int) -> int | None:
    """M of the first witness script that has as many keys as there are xpubs."""
    for item in psbt.inputs:
        if item.witness_script is None or not item.derivations:
            continue
        try:
            threshold, keys = parse_multisig_script(item.witness_script)
        except MultisigError:
            continue
        if len(keys) == count:
            return threshold
    return None


def _propose(
    threshold: int, keys: tuple[OriginKey, ...], seed: Seed, store: WalletStore, policy: XpubPolicy
) -> Choice:
    verify_only = policy is XpubPolicy.VERIFY or (policy is XpubPolicy.FACTORY and len(store) > 0)
    if verify_only:
        raise TransactionRefused("XPUBs in PSBT do not match any existing wallet")
    try:
        wallet = Wallet(f"PSBT-{threshold}-of-{len(keys)}", threshold, keys)
        check_membership(wallet, seed)
    except CommandRefused as error:
        raise TransactionRefused(INVALID) from error
    return Choice(wallet, needs_approval=policy is not XpubPolicy.TRUST)
