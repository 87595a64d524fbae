"""The device's checks of a transaction before it shows it: whether it may sign, and what each output is.

The order of the checks and the words of the refusals are the firmware's (5.4, `psbt.py`). In three things
this device is stricter: the claimed UTXO must be the previous transaction's output where both are given,
nothing but SIGHASH_ALL is signed, and only what goes back to the very kind of coin that is spent is change
(the hardware calls an output to any key of its seed change, and warns), with its key derived from the seed
before the person is asked, not after.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from device_simulators.coldcard.change import Source, is_change, own_paths, path_warnings
from device_simulators.coldcard.replies import ScriptMismatch, TransactionRefused
from device_simulators.coldcard.wallet import Wallet, WalletStore, shown_fingerprint
from device_simulators.coldcard.wallet_file import INVALID
from device_simulators.coldcard.wire import MAX_FEE_PERCENT, WARN_FEE_PERCENT
from device_simulators.seed import Seed
from multisig import (
    MAX_MONEY,
    SIGHASH_ALL,
    DerivationPath,
    KeyOrigin,
    MultisigError,
    OutPoint,
    Psbt,
    PsbtInput,
    Sats,
    ScriptKind,
    TxOut,
    classify,
    hash160,
    p2pkh,
    p2wpkh,
    p2wsh,
    parse_multisig_script,
    relative_lock,
)
from multisig.bip322 import require_showable, to_spend
from multisig.bip322.messages import burn

SIGHASHES_OF_NONE = frozenset({0x02, 0x82})
FINAL_SEQUENCE = 0xFFFFFFFF
LOCKTIME_IS_TIME = 500_000_000  # consensus: below it is a height
RELAYED_OP_RETURN = 83  # bytes of script


@dataclass(frozen=True)
class KeyUse:
    """One signature to make: input, our key, its path, and what BIP-143 needs besides the transaction."""

    index: int
    public_key: bytes
    path: DerivationPath
    script_code: bytes
    amount: Sats


@dataclass(frozen=True)
class Review:
    """`change` are output indexes. `fee` is None where an input that is not ours brings no UTXO. `notes` and
    `warnings` are lines of the screen.
    """

    psbt: Psbt
    wallet: Wallet | None
    uses: tuple[KeyUse, ...]
    change: frozenset[int]
    fee: Sats | None
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


def check_previous_transactions(psbt: Psbt) -> None:
    """Every previous transaction must be the one that its input names (BIP-174, the fee attack)."""
    for item in psbt.inputs:
        previous = item.non_witness_utxo
        if previous is None:
            continue
        if previous.txid != item.outpoint.txid or item.outpoint.vout >= len(previous.outputs):
            raise TransactionRefused(INVALID)
        if item.witness_utxo not in {None, previous.outputs[item.outpoint.vout]}:
            raise TransactionRefused(INVALID)


def check_own_keys(psbt: Psbt, seed: Seed) -> None:
    """At least one input must name a key of ours."""
    fingerprints = {origin.fingerprint for item in psbt.inputs for origin in item.derivations.values()}
    if not fingerprints:
        raise TransactionRefused("PSBT does not contain any key path information.")
    if seed.fingerprint not in fingerprints:
        found = ", ".join(sorted(shown_fingerprint(other) for other in fingerprints))
        raise TransactionRefused(
            "None of the keys involved in this transaction belong to this Coldcard "
            f"(need {shown_fingerprint(seed.fingerprint)}, found {found})."
        )


def review(psbt: Psbt, seed: Seed, store: WalletStore, wallet: Wallet | None) -> Review:
    """Look at every input and output. `wallet` is the one the xpubs named, if any.

    Raises TransactionRefused in the firmware's words.
    """
    if not psbt.outputs or _sum_out(psbt) > MAX_MONEY:
        raise TransactionRefused(INVALID)
    message = _message(psbt)
    if psbt.tx.version not in ({1, 2, 3} if message is None else {0, 2}):
        raise TransactionRefused(INVALID)
    inputs = _InputReview(seed, store, wallet)
    for index, item in enumerate(psbt.inputs):
        inputs.look_at(index, item)
    if len(inputs.complete) == len(psbt.inputs):
        raise TransactionRefused("Transaction looks completely signed already?")
    source = inputs.source()
    change = frozenset(i for i, o in enumerate(psbt.outputs) if is_change(i, o, seed, source))
    fee = inputs.fee(psbt)
    challenge = b"" if message is None else _challenge(psbt, message, fee)
    high = [] if message is not None else _fee_warnings(psbt, fee)
    odd = [] if fee is None or message is not None else _output_warnings(psbt)
    _check_sighashes(psbt, seed, consolidation=len(change) == len(psbt.outputs))
    back = ((i, path) for i in sorted(change) for path in own_paths(psbt.outputs[i], seed).values())
    strays = path_warnings((use.path for use in inputs.uses), back)
    notes, idle = _locktime(psbt)
    notes += _relative_locks(psbt)
    warnings = (*idle, *inputs.warnings(), *high, *odd, *strays)
    return Review(psbt, source.wallet, tuple(inputs.uses), change, fee, notes, warnings, message, challenge)


def _message(psbt: Psbt) -> str | None:
    """The message, by the only output and the global field; None for a payment."""
    if psbt.tx.outputs != (burn(),):
        return None
    try:
        text = (psbt.signed_message or b"").decode()
        require_showable(text)
    except (UnicodeDecodeError, MultisigError) as error:
        raise TransactionRefused(INVALID) from error
    return text


def _challenge(psbt: Psbt, message: str, fee: Sats | None) -> bytes:
    """The script whose address signs it. `validate_bip322_input0`: the first input spends `to_spend` of the
    message, and all coins are ours.
    """
    utxo = _utxo(psbt.inputs[0])
    if utxo is None or utxo.amount or fee is None:
        raise TransactionRefused(INVALID)
    holder = to_spend(message, utxo.script_pubkey)
    if psbt.inputs[0].outpoint != OutPoint(holder.txid, 0):
        raise TransactionRefused("i0: invalid BIP-322 'to_spend': to_spend hash")
    if any(item.sighash_type not in {None, SIGHASH_ALL} for item in psbt.inputs):
        raise TransactionRefused("POR not SIGHASH_ALL")
    return utxo.script_pubkey


class _InputReview:
    """What has been learnt while going through the inputs."""

    def __init__(self, seed: Seed, store: WalletStore, wallet: Wallet | None) -> None:
        self.uses: list[KeyUse] = []
        self.complete: list[int] = []
        self._seed = seed
        self._store = store
        self._wallet = wallet
        self._kinds: set[ScriptKind] = set()
        self._total = 0
        self._without_utxo: list[int] = []
        self._not_ours: list[int] = []

    def look_at(self, index: int, item: PsbtInput) -> None:
        complete = bool(item.partial_signatures) and len(item.partial_signatures) >= len(item.derivations)
        if complete:
            self.complete.append(index)
        utxo = _utxo(item)
        if utxo is None:
            if not complete and self._is_ours(item):
                raise TransactionRefused("Missing own UTXO(s). Cannot determine value being signed")
            self._without_utxo.append(index)
            return
        self._total += utxo.amount
        if complete:
            return
        if item.derivations:
            self._solve(index, item, utxo)
        if not self._is_ours(item):
            self._not_ours.append(index)

    def _is_ours(self, item: PsbtInput) -> bool:
        return any(origin.fingerprint == self._seed.fingerprint for origin in item.derivations.values())

    def source(self) -> Source:
        """A wallet that only the xpubs name, and no coin comes from, is not the source of anything."""
        kind = next(iter(self._kinds)) if len(self._kinds) == 1 else None
        return Source(kind, self._wallet if ScriptKind.P2WSH in self._kinds else None)

    def _solve(self, index: int, item: PsbtInput, utxo: TxOut) -> None:
        kind = classify(utxo.script_pubkey)
        self._kinds.add(kind)
        if kind is ScriptKind.P2WSH:
            self._solve_multisig(index, item, utxo)
        elif kind is ScriptKind.P2WPKH:
            self._solve_single(index, item, utxo)
        elif kind is ScriptKind.P2TR:
            raise TransactionRefused("Install EDGE firmware to spend taproot.")
        else:  # the hardware also spends the older kinds
            raise TransactionRefused(f"Unhandled scriptPubKey: {utxo.script_pubkey.hex()}")

    def _solve_multisig(self, index: int, item: PsbtInput, utxo: TxOut) -> None:
        script = item.witness_script
        if script is None:
            raise TransactionRefused(f"Missing redeem/witness script for input #{index}")
        wallet = self._wallet_of(item, script)
        try:
            wallet.check_script(script, item.derivations)
        except ScriptMismatch as error:
            raise TransactionRefused(f"Input #{index}: {error}") from error
        if utxo.script_pubkey != p2wsh(script):
            raise TransactionRefused(f"Input #{index}: spk mismatch")
        self._use_own_key(index, item, item.derivations, script, utxo.amount)

    def _wallet_of(self, item: PsbtInput, script: bytes) -> Wallet:
        """Find the wallet at the first multisig input; every later one must be of the same."""
        try:
            threshold, _ = parse_multisig_script(script)
        except MultisigError as error:
            raise TransactionRefused(INVALID) from error
        origins = item.derivations.values()
        if self._wallet is None:
            self._wallet = self._store.find(threshold, origins)
            if self._wallet is None:
                raise TransactionRefused("Unknown multisig wallet")
        elif self._wallet.threshold != threshold or not self._wallet.matches(origins):
            raise TransactionRefused(INVALID)
        return self._wallet

    def _solve_single(self, index: int, item: PsbtInput, utxo: TxOut) -> None:
        key = next((key for key in item.derivations if p2wpkh(key) == utxo.script_pubkey), None)
        if key is None:
            raise TransactionRefused(f"Input #{index}: pubkey vs. address wrong")
        owner = {key: item.derivations[key]}
        self._use_own_key(index, item, owner, p2pkh(hash160(key)), utxo.amount)

    def _use_own_key(
        self, index: int, item: PsbtInput, keys: Mapping[bytes, KeyOrigin], script_code: bytes, amount: Sats
    ) -> None:
        """One signature an input, by the first of our keys among `keys` that has not signed yet."""
        for key, origin in keys.items():
            if origin.fingerprint != self._seed.fingerprint or key in item.partial_signatures:
                continue
            if self._seed.public_key(origin.path) != key:
                raise TransactionRefused(f"Input #{index}: pubkey vs. address wrong")
            self.uses.append(KeyUse(index, key, origin.path, script_code, amount))
            return

    def fee(self, psbt: Psbt) -> Sats | None:
        if self._without_utxo:
            return None
        fee = self._total - _sum_out(psbt)
        if fee < 0:
            raise TransactionRefused("Outputs worth more than inputs!")
        return Sats(fee)

    def warnings(self) -> list[str]:
        found = []
        if self._without_utxo:
            missing = _numbers(self._without_utxo)
            found.append(f"Unable to calculate fee: Some input(s) haven't provided UTXO(s): {missing}")
        if self._not_ours:
            found.append(
                "Limited Signing: We are not signing these inputs, because we do not know the key: "
                + _numbers(self._not_ours)
            )
        if self.complete:
            found.append(
                "Partly Signed Already: "
                "Some input(s) provided were already completely signed by other parties: "
                + _numbers(self.complete)
            )
        return found


def _utxo(item: PsbtInput) -> TxOut | None:
    if item.witness_utxo is not None or item.non_witness_utxo is None:
        return item.witness_utxo
    return item.non_witness_utxo.outputs[item.outpoint.vout]


def _numbers(indexes: list[int]) -> str:
    return ", ".join(str(index) for index in indexes)


def _fee_warnings(psbt: Psbt, fee: Sats | None) -> list[str]:
    """Raises TransactionRefused from 10 % of all outputs on; warns from 5 % on."""
    if fee is None:
        return []
    total = _sum_out(psbt)
    percent = fee * 100 / total if total else 100.0
    if fee * 100 >= total * MAX_FEE_PERCENT:
        raise TransactionRefused(
            f"Network fee bigger than {MAX_FEE_PERCENT}% of total amount (it is {percent:.0f}%)."
        )
    if fee * 100 >= total * WARN_FEE_PERCENT:
        return [f"Big Fee: Network fee is more than {WARN_FEE_PERCENT}% of total value ({percent:.1f}%)."]
    return []


def _output_warnings(psbt: Psbt) -> list[str]:
    data = [o.script_pubkey for o in psbt.outputs if classify(o.script_pubkey) is ScriptKind.OP_RETURN]
    other = [o for o in psbt.outputs if classify(o.script_pubkey) is not ScriptKind.OP_RETURN]
    unknown = sum(classify(o.script_pubkey) is ScriptKind.UNKNOWN for o in other)
    found = []
    if len(data) > 1 or any(len(script) > RELAYED_OP_RETURN for script in data):
        many = f" Multiple OP_RETURN outputs: {len(data)}" if len(data) > 1 else ""
        large = " OP_RETURN > 80 bytes" if any(len(script) > RELAYED_OP_RETURN for script in data) else ""
        found.append(f"OP_RETURN: TX may not be relayed by some nodes.{many}{large}")
    if unknown:
        found.append(f"Output?: Sending to {unknown} not well understood script(s).")
    if any(o.amount == 0 for o in other):
        found.append("Zero Value: Non-standard zero value output(s).")
    return found


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


def _relative_locks(psbt: Psbt) -> tuple[str, ...]:
    """`ux_relative_timelocks`. Of more than ten locks it shows the largest; here are all of them."""
    locks = ((i, relative_lock(item.sequence, psbt.tx.version)) for i, item in enumerate(psbt.inputs))
    known = [(index, lock) for index, lock in locks if lock is not None]
    blocks = [(index, f"{lock.blocks} blocks") for index, lock in known if lock.blocks]
    times = [(index, _span(lock.time)) for index, lock in known if not lock.blocks]
    by_height = _lock_note("Block height RTL", "block height timelock", " of ", blocks)
    return (*by_height, *_lock_note("Time-based RTL", "time-based timelock", " of:\n ", times))


def _lock_note(label: str, kind: str, of: str, locks: list[tuple[int, str]]) -> tuple[str, ...]:
    if not locks:
        return ()
    values = {value for _index, value in locks}
    if len(locks) == 1:
        return (f"{label}: Input {locks[0][0]}. has relative {kind}{of}{locks[0][1]}",)
    each = "" if len(values) == 1 else "".join(f"\n {index}.  {value}" for index, value in locks)
    return (f"{label}: {len(locks)} inputs have relative {kind}{each and '.'}{each or of + values.pop()}",)


def _span(time: timedelta) -> str:
    """`seconds2human_readable`."""
    hours, rest = divmod(time.seconds, 3600)
    parts = {"d": time.days, "h": hours, "m": rest // 60, "s": rest % 60}
    return " ".join(f"{count}{unit}" for unit, count in parts.items() if count)


def _sum_out(psbt: Psbt) -> int:
    return sum(output.amount for output in psbt.outputs)


def _check_sighashes(psbt: Psbt, seed: Seed, *, consolidation: bool) -> None:
    for item in psbt.inputs:
        if item.sighash_type in {None, SIGHASH_ALL}:
            continue
        if not any(origin.fingerprint == seed.fingerprint for origin in item.derivations.values()):
            continue
        if consolidation:
            raise TransactionRefused("Only sighash ALL is allowed for pure consolidation transactions.")
        if item.sighash_type in SIGHASHES_OF_NONE:
            raise TransactionRefused("Sighash NONE is not allowed as funds could be going anywhere.")
        raise TransactionRefused(f"Unsupported sighash flag 0x{item.sighash_type:x}")
