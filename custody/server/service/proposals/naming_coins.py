"""Coins that a send names: exactly these are spent, and the error names each one that cannot be.

A coin of another vault is treated as missing (P24). The transaction that locks the coins checks them again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.server.domain.errors import Fault, Invalid, LockedFunds
from custody.server.service.lifecycle import holds_coins, members_of
from custody.server.service.proposals.coins import (
    COINBASE_MATURITY,
    Utxo,
    is_own_change,
    kept_for_tokens,
    token_coins,
    utxo_of,
)
from custody.server.store.models import ChainCoin, CoinLock, Vault
from multisig import OutPoint, TxOut


@dataclass(frozen=True)
class Named:
    """The coins in the given order. ``kept``: another coin, which stays for the vault's tokens."""

    coins: tuple[Utxo, ...]
    kept: Utxo | None


def named_coins(
    db: Session, vault: Vault, named: Sequence[str], tip_height: int, outputs: Sequence[TxOut]
) -> Named:
    """Raises Invalid for coins that are not the vault's, spent, unconfirmed or kept for its tokens; otherwise
    LockedFunds for locked ones. The error has a fault for each such coin.
    """
    outpoints = [_parsed(text) for text in named]
    known = _known(db, vault, outpoints)
    refused = [
        Fault(f"/coins/{place}", f"{outpoint} {why[1]}", why[0])
        for place, outpoint in enumerate(outpoints)
        if (why := _why_not(db, known.get(outpoint), tip_height)) is not None
    ]
    if refused:
        raise Invalid(_in_a_sentence(refused), faults=tuple(refused))
    held = [
        Fault(f"/coins/{place}", f"{outpoint} is locked by the proposal {holder}.", "reserved")
        for place, outpoint in enumerate(outpoints)
        if (holder := _holder(db, vault, outpoint)) is not None
    ]
    if held:
        raise LockedFunds(_in_a_sentence(held), faults=tuple(held))
    coins = tuple(utxo_of(known[outpoint]) for outpoint in outpoints)
    return Named(coins, _kept(db, vault, coins, tip_height, outputs))


def _parsed(text: str) -> OutPoint:
    txid, _, vout = text.partition(":")
    return OutPoint(txid, int(vout))


def _known(db: Session, vault: Vault, outpoints: Sequence[OutPoint]) -> Mapping[OutPoint, ChainCoin]:
    query = select(ChainCoin).where(
        ChainCoin.chain == vault.chain,
        ChainCoin.vault_id == vault.id,
        ChainCoin.txid.in_(sorted({outpoint.txid for outpoint in outpoints})),
    )
    return {OutPoint(coin.txid, coin.vout): coin for coin in db.scalars(query)}


def _why_not(db: Session, coin: ChainCoin | None, tip_height: int) -> tuple[str, str] | None:
    """A code, and words that follow the outpoint."""
    if coin is None:
        return "unknown-coin", "is not a coin of this vault."
    if coin.spent_by is not None:
        return "spent", f"is spent by {coin.spent_by}."
    if coin.height is None and not is_own_change(db, coin):
        return "unconfirmed", "is not confirmed yet, and its sender may replace it."
    if coin.is_coinbase and (coin.height or 0) > tip_height + 1 - COINBASE_MATURITY:
        return "immature", f"was mined less than {COINBASE_MATURITY} blocks ago."
    return None


def _holder(db: Session, vault: Vault, outpoint: OutPoint) -> str | None:
    """The proposal that locks the coin: the newest version of its family that holds coins."""
    lock = db.get(CoinLock, (vault.chain, outpoint.txid, outpoint.vout))
    if lock is None:
        return None
    return [member.id for member in members_of(db, lock.family_id) if holds_coins(member)][-1]


def _kept(
    db: Session, vault: Vault, coins: Sequence[Utxo], tip_height: int, outputs: Sequence[TxOut]
) -> Utxo | None:
    """A coin at the vault's address for its tokens, other than the named ones. Raises Invalid where tokens
    need one and none is left.
    """
    kept = kept_for_tokens(db, vault, tip_height, outputs)
    if kept is None or kept not in coins:
        return kept
    left = [utxo for utxo in token_coins(db, vault, tip_height) if utxo not in coins]
    if not left:
        place = coins.index(kept)
        sentence = f"{kept.outpoint} stays at the vault's address, for its tokens."
        raise Invalid.at(f"/coins/{place}", sentence, "kept-for-tokens")
    return left[-1]


def _in_a_sentence(faults: Sequence[Fault]) -> str:
    return " ".join(fault.detail for fault in faults[:3]) + (" …" if len(faults) > 3 else "")
