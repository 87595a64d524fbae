"""What a transaction is to the device before it shows it: the wallet whose coins are spent, what comes back
to it, the fee, and what is to be signed.

The device takes the host's word for no script that it can derive: what only claims to come back is a payment
on its screen. Of the firmware's refusals (5.6.1, `psbt.py`) it has those that the transcripts show.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from device_simulators.coldcard.replies import CommandRefused, TransactionRefused
from device_simulators.coldcard.wallet import ColdcardWallet, WalletStore
from device_simulators.coldcard.wallet_file import check_membership
from device_simulators.coldcard.wire import MAX_FEE_PERCENT, WARN_FEE_PERCENT
from device_simulators.seed import Seed
from multisig import (
    DerivationPath,
    KeyOrigin,
    MultisigError,
    OriginKey,
    Psbt,
    Sats,
    hash160,
    p2pkh,
    p2wpkh,
    p2wsh,
    parse_multisig_script,
)
from multisig.bip322.messages import burn

FINAL_SEQUENCE = 0xFFFFFFFF
LOCKTIME_IS_TIME = 500_000_000  # consensus: below it is a height
INVALID = "Invalid PSBT"  # all that the firmware says over the wire when one of its assertions fails


@dataclass(frozen=True)
class KeyUse:
    """One signature to make: input, our key, its path, and what BIP-143 needs besides the transaction."""

    index: int
    public_key: bytes
    path: DerivationPath
    script_code: bytes
    amount: Sats


@dataclass(frozen=True)
class ColdcardReview:
    """`change` are output indexes. `notes` and `warnings` are lines of the screen. `message` is the text that
    the address of the script `challenge` proves (BIP-322); None for a payment.
    """

    psbt: Psbt
    uses: tuple[KeyUse, ...]
    change: frozenset[int]
    fee: Sats
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    message: str | None = None
    challenge: bytes = b""

    @property
    def total_sent(self) -> Sats:
        return Sats(sum(o.amount for i, o in enumerate(self.psbt.outputs) if i not in self.change))


def read(data: bytes) -> Psbt:
    """Raises TransactionRefused for bytes that are not a PSBT of version 0."""
    try:
        return Psbt.parse(data)
    except MultisigError as error:
        raise TransactionRefused("PSBT parse failed") from error


def wallet_of(psbt: Psbt, seed: Seed, store: WalletStore) -> tuple[ColdcardWallet | None, bool]:
    """The wallet that the transaction's xpubs describe (BIP-174, PSBT_GLOBAL_XPUB), without them the one on
    record that its first input is of, None for a single key's; and whether it is on record.
    """
    script, origins = psbt.inputs[0].witness_script, psbt.inputs[0].derivations.values()
    if script is None:
        return None, True
    keys = tuple(OriginKey(origin, xpub) for xpub, origin in psbt.xpubs)
    try:
        threshold, _ = parse_multisig_script(script)
        if not keys:
            stored = store.find(threshold, origins)
            if stored is None:
                raise TransactionRefused("Unknown multisig wallet")
            return stored, True
        wallet = ColdcardWallet(f"PSBT-{threshold}-of-{len(keys)}", threshold, keys)
        check_membership(wallet, seed)
    except (MultisigError, CommandRefused) as error:
        raise TransactionRefused(INVALID) from error
    known = store.twin(wallet)
    return (wallet, False) if known is None else (known, True)


def review(psbt: Psbt, seed: Seed, wallet: ColdcardWallet | None) -> ColdcardReview:
    """Look at every input and output. `wallet` is the one that the xpubs describe, if any.

    Raises TransactionRefused in the firmware's words.
    """
    uses, total = [], 0
    for index, item in enumerate(psbt.inputs):
        if item.witness_utxo is None:
            raise TransactionRefused("Missing own UTXO(s). Cannot determine value being signed")
        amount = item.witness_utxo.amount
        total += amount
        own = own_key(item.derivations, seed)
        if own is None or own[0] in item.partial_signatures:
            continue
        key, path = own
        script_pubkey, script_code = derive(path, seed, wallet)
        if script_pubkey != item.witness_utxo.script_pubkey:
            raise TransactionRefused(f"Input #{index}: spk mismatch")
        uses.append(KeyUse(index, key, path, script_code, amount))
    change = frozenset(
        index
        for index, output in enumerate(psbt.outputs)
        if (own := own_key(output.derivations, seed)) is not None
        and derive(own[1], seed, wallet)[0] == output.script_pubkey
    )
    paid = sum(output.amount for output in psbt.outputs)
    fee = Sats(total - paid)
    notes, warnings = _locktime(psbt)
    if psbt.tx.outputs == (burn(),):
        message, coin = (psbt.signed_message or b"").decode(), psbt.inputs[0].witness_utxo
        assert coin is not None, "every input has been looked at"
        return ColdcardReview(psbt, tuple(uses), change, fee, notes, warnings, message, coin.script_pubkey)
    return ColdcardReview(psbt, tuple(uses), change, fee, notes, (*warnings, *_fee_warnings(fee, paid)))


def own_key(derivations: Mapping[bytes, KeyOrigin], seed: Seed) -> tuple[bytes, DerivationPath] | None:
    """The key that is said to be this device's, and is, with its path."""
    for key, origin in derivations.items():
        if origin.fingerprint == seed.fingerprint and seed.public_key(origin.path) == key:
            return key, origin.path
    return None


def derive(path: DerivationPath, seed: Seed, wallet: ColdcardWallet | None) -> tuple[bytes, bytes]:
    """What is at a path of ours: the output script, and what a segwit v0 signature covers as the script."""
    if wallet is not None:
        script = wallet.script_at(path)
        return p2wsh(script), script
    key = seed.public_key(path)
    return p2wpkh(key), p2pkh(hash160(key))


def _fee_warnings(fee: Sats, paid: int) -> tuple[str, ...]:
    """Raises TransactionRefused from 10 % of all outputs on; warns from 5 % on."""
    percent = fee * 100 / paid if paid else 100.0
    if fee * 100 >= paid * MAX_FEE_PERCENT:
        raise TransactionRefused(
            f"Network fee bigger than {MAX_FEE_PERCENT}% of total amount (it is {percent:.0f}%)."
        )
    if fee * 100 >= paid * WARN_FEE_PERCENT:
        return (f"Big Fee: Network fee is more than {WARN_FEE_PERCENT}% of total value ({percent:.1f}%).",)
    return ()


def _locktime(psbt: Psbt) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(notes, warnings) about the lock time of the whole transaction."""
    locktime = psbt.tx.locktime
    if not locktime:
        return (), ()
    if all(item.sequence == FINAL_SEQUENCE for item in psbt.inputs):
        return (), ("Bad Locktime: Locktime has no effect! None of the nSequences decremented.",)
    if locktime < LOCKTIME_IS_TIME:
        when = f"block height of {locktime}"
    else:
        when = f"{datetime.fromtimestamp(locktime, UTC):%Y-%m-%d %H:%M:%S} UTC (MTP)"
    return (f"Abs Locktime: This tx can only be spent after {when}",), ()
