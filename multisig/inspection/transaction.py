"""Findings about the transaction as a whole: network, quorum, fee, locks."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from multisig.inspection.model import Finding, FindingCode, found
from multisig.keys import HARDENED, ExtendedPublicKey, Fingerprint
from multisig.network import Network
from multisig.proofs import policy_keys, policy_threshold
from multisig.psbt import Psbt
from multisig.transaction import LOCKTIME_THRESHOLD, TRUC_VERSION, relative_lock
from multisig.units import MAX_MONEY, FeeRate, Sats
from multisig.vault import Policy

# Bitcoin Core's sendrawtransaction refuses more than 0.10 BTC/kvB by default, its wallet a fee of more than
# 0.10 BTC (-maxtxfee): a transaction that nodes refuse need not be signed.
MAX_FEE_RATE = FeeRate(10_000_000)
MAX_FEE = Sats(10_000_000)
# A Coldcard refuses a fee of 10 % of the outputs and warns at 5 %. A small coin swept in a busy hour may pay
# more: it is shown; only what no sweep explains is refused.
MAX_FEE_SHARE_PERCENT = 50
WARN_FEE_SHARE_PERCENT = 5

# BIP-125: any sequence below this one allows the transaction to be replaced.
_LAST_NON_REPLACEABLE = 0xFFFFFFFE
# Versions that nodes pass on (Bitcoin Core, TX_MAX_STANDARD_VERSION).
_STANDARD_VERSIONS = frozenset({1, 2, TRUC_VERSION})
# BIP-431, rule 4. That a child of an unconfirmed one has 1,000 vB at most (rule 5), no PSBT shows.
MOST_TRUC_VSIZE = 10_000


@dataclass(frozen=True, slots=True)
class FeeLimits:
    """Where a fee is refused: by rate, by amount, by its share of what is spent."""

    max_rate: FeeRate = MAX_FEE_RATE
    max_fee: Sats = MAX_FEE
    max_share_percent: int = MAX_FEE_SHARE_PERCENT
    warn_share_percent: int = WARN_FEE_SHARE_PERCENT


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums in satoshi; `total_in`, and what follows from it, is None where the amount of a coin is not
    proven.
    """

    total_in: Sats | None
    total_out: Sats
    vsize: int

    @property
    def fee(self) -> Sats | None:
        return None if self.total_in is None else Sats(self.total_in - self.total_out)

    @property
    def fee_rate(self) -> FeeRate | None:
        # Clamped: a hostile PSBT may claim more than there is.
        return None if self.fee is None else FeeRate(min(max(self.fee, 0) * 1000 // self.vsize, MAX_MONEY))


def signals_rbf(psbt: Psbt) -> bool:
    """BIP-125; and BIP-431, rule 1."""
    return psbt.tx.version == TRUC_VERSION or any(
        item.sequence < _LAST_NON_REPLACEABLE for item in psbt.tx.inputs
    )


def inspect_transaction(
    psbt: Psbt, policy: Policy, network: Network, totals: Totals, limits: FeeLimits
) -> Iterator[Finding]:
    yield from inspect_keys(psbt, policy, network)
    yield from _fee(totals, limits)
    yield from _locks(psbt, totals)


def digest_of(
    kind: str, psbt: Psbt, policy: Policy, network: Network, shown: list[Any], findings: Iterable[Finding]
) -> str:
    """What an approval is bound to, as hex SHA-256: the unsigned transaction, the policy, and what is
    ``shown``.
    """
    whole = [
        kind,
        psbt.tx.serialize(include_witness=False).hex(),
        [network, policy_threshold(policy), *(str(key) for key in policy_keys(policy))],
        *shown,
        [(item.code, item.subject, item.sentence) for item in findings],
    ]
    text = json.dumps(whole, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def inspect_keys(psbt: Psbt, policy: Policy, network: Network) -> Iterator[Finding]:
    """What is wrong with the network, the account keys, and coins that are spent twice."""
    yield from _network(psbt, policy, network)
    yield from _xpubs(psbt, policy)
    yield from _duplicates(psbt)


def _network(psbt: Psbt, policy: Policy, network: Network) -> Iterator[Finding]:
    if policy.network is not network:
        yield found(
            FindingCode.WRONG_NETWORK,
            f"The vault is on {policy.network}, the transaction is asked for on {network}.",
        )
    elif _coin_types(psbt, policy) - {network.coin_type + HARDENED}:
        yield found(FindingCode.WRONG_NETWORK, f"The keys in the PSBT are not of {network}.")


def _coin_types(psbt: Psbt, policy: Policy) -> set[int]:
    """Of which networks the origins by the policy's devices speak (BIP-44: the second step of a path)."""
    ours = {bytes(key.fingerprint) for key in policy_keys(policy)}
    stated = [item.derivations for item in psbt.inputs] + [output.derivations for output in psbt.outputs]
    origins = [origin for derivations in stated for origin in derivations.values()]
    origins += [origin for _, origin in psbt.xpubs]
    paths = (origin.path.indexes for origin in origins if bytes(origin.fingerprint) in ours)
    return {path[1] for path in paths if len(path) > 1}


def _xpubs(psbt: Psbt, policy: Policy) -> Iterator[Finding]:
    ours = {key.origin: key.xpub for key in policy_keys(policy)}
    if not all(_is_same_key(xpub, ours.get(origin)) for xpub, origin in psbt.xpubs):
        yield found(FindingCode.XPUB_MISMATCH, "An account key in the PSBT is not one of this vault's.")


_NO_PARENT = Fingerprint(bytes(4))


def _is_same_key(stated: ExtendedPublicKey, ours: ExtendedPublicKey | None) -> bool:
    """Programs that were given a key without its parent write a parent of zeros, which claims nothing."""
    if ours is None:
        return False
    parents = {stated.parent_fingerprint, ours.parent_fingerprint} - {_NO_PARENT}
    return len(parents) < 2 and replace(ours, parent_fingerprint=stated.parent_fingerprint) == stated


def _duplicates(psbt: Psbt) -> Iterator[Finding]:
    seen = set()
    for index, item in enumerate(psbt.inputs):
        if item.outpoint in seen:
            yield found(FindingCode.DUPLICATE_INPUT, "The same coin is spent twice.", f"input {index}")
        seen.add(item.outpoint)


def _fee(totals: Totals, limits: FeeLimits) -> Iterator[Finding]:
    fee, rate, total = totals.fee, totals.fee_rate, totals.total_in
    if fee is None or rate is None or total is None:
        return
    if fee < 0:
        yield found(FindingCode.FEE_NEGATIVE, f"The outputs are {-fee} sat more than the coins hold.")
    elif rate > limits.max_rate or fee > limits.max_fee or _is_share(fee, limits.max_share_percent, total):
        yield found(FindingCode.FEE_ABOVE_LIMIT, f"The fee of {fee} sat ({rate}) is above the limit.")
    elif _is_share(fee, limits.warn_share_percent, total):
        yield found(
            FindingCode.FEE_HIGH,
            f"The fee of {fee} sat is {fee * 100 // total} % of what is spent.",
        )


def _is_share(fee: Sats, percent: int, total: Sats) -> bool:
    return fee * 100 >= percent * total


def _locks(psbt: Psbt, totals: Totals) -> Iterator[Finding]:
    tx = psbt.tx
    if tx.version not in _STANDARD_VERSIONS:
        yield found(
            FindingCode.NON_STANDARD_VERSION, f"Nodes do not pass on a transaction of version {tx.version}."
        )
    if tx.version == TRUC_VERSION and totals.vsize > MOST_TRUC_VSIZE:
        sentence = f"Of version 3, nodes pass on up to {MOST_TRUC_VSIZE:,} vB, and this has {totals.vsize:,}."
        yield found(FindingCode.NON_STANDARD_VERSION, sentence)
    if tx.locktime >= LOCKTIME_THRESHOLD:
        yield found(
            FindingCode.LOCKED_BY_TIME, "The transaction is locked until a point in time, not a height."
        )
    for index, item in enumerate(tx.inputs):
        lock = relative_lock(item.sequence, tx.version)
        if lock is not None:
            yield found(FindingCode.LOCKED_BY_AGE, f"The coin must be {lock} old first.", f"input {index}")
