"""A snapshot of the chain, which is all that a backend reports about our scripts since the last shared block;
and keeping the stored coins in step with it: deposits, spends, reorganisations and evictions.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import delete, exists, insert, select
from sqlalchemy.orm import Session

from custody.schemas.webhooks import EventKind
from custody.server.chain.backend import BlockRef, ChainBackend, FoundOutput
from custody.server.errors import ChainUnavailable
from custody.server.network.backends import fork_of
from custody.server.rules.ports import Clock
from custody.server.store.models import ChainCoinRow, ChainTransactionRow, VaultRow, WatchedScriptRow
from custody.server.store.store import chunks, rows_in
from custody.server.vaults.stored import index_after, note_held, watch_vault
from custody.server.webhooks.events import WebhookEvents, coin_data, tell_deposits
from multisig import CHANGE, RECEIVE, OutPoint

# After a deeper reorganisation everything is read again.
KEPT_BLOCKS = 288
# How often a snapshot is begun again because the tip changed meanwhile.
MAX_READS = 3


@dataclass(frozen=True)
class ChainSnapshot:
    """`fork` is the height of the last shared block, -1 where there is none; `blocks` are those above it."""

    tip: BlockRef
    fork: int
    blocks: tuple[BlockRef, ...]
    outputs: tuple[FoundOutput, ...]

    @cached_property
    def _by_height(self) -> Mapping[int, BlockRef]:
        spends = (each.spent.block for each in self.outputs if each.spent is not None)
        ours = (*(each.block for each in self.outputs), *spends, *self.blocks)
        return {block.height: block for block in ours if block is not None}

    def block_at(self, height: int | None) -> BlockRef | None:
        """None where it is neither new nor creates or spends an output of the snapshot."""
        return None if height is None else self._by_height.get(height)


def take_snapshot(
    backend: ChainBackend,
    known_blocks: Mapping[int, str],
    known: Iterable[bytes],
    new: Iterable[bytes],
    waiting: Mapping[OutPoint, bytes],
) -> ChainSnapshot:
    """Reads until the tip is the same before and after. `new` scripts are read from the beginning of the
    chain.

    `waiting` has the scripts of stored coins that are unconfirmed or whose spend is, by outpoint. Where the
    backend shows nothing new of them, they are read from the beginning too: they have left the mempool, or
    have been in an old block and an earlier answer was late. Raises ChainUnavailable.
    """
    known, new = frozenset(known), frozenset(new)
    for _ in range(MAX_READS):
        tip = backend.tip()
        fork = fork_of(backend, sorted(known_blocks.items(), reverse=True), tip)
        outputs = (*backend.outputs_to(known, since_height=fork + 1), *backend.outputs_to(new - known))
        outputs += _settled(backend, waiting, {output.outpoint for output in outputs})
        above = range(max(fork + 1, tip.height - KEPT_BLOCKS + 1), tip.height + 1)
        blocks = tuple(block for block in map(backend.block_at, above) if block is not None)
        if backend.tip() == tip:
            return ChainSnapshot(tip, fork, blocks, outputs)
    raise ChainUnavailable("The chain backend changes its tip during each read.")


def _settled(
    backend: ChainBackend, waiting: Mapping[OutPoint, bytes], shown: Collection[OutPoint]
) -> tuple[FoundOutput, ...]:
    lost = {outpoint: script for outpoint, script in waiting.items() if outpoint not in shown}
    if not lost:
        return ()
    outputs = backend.outputs_to(frozenset(lost.values()))
    return tuple(each for each in outputs if each.outpoint in lost)


@dataclass(frozen=True)
class Coins:
    """Writes one chain's coins."""

    chain: str
    clock: Clock
    events: WebhookEvents

    def apply(self, db: Session, snapshot: ChainSnapshot, raws: Mapping[str, bytes]) -> set[str]:
        """Updates the coins to the snapshot. `raws`: by txid, the bytes of transactions that create coins not
        stored yet. Returns the txids of all transactions that create or spend a changed coin.

        A payment to an address advances the vault's next unused index, and with it the watched gap.
        """
        stale = {OutPoint(coin.txid, coin.vout): coin for coin in self._stale(db, snapshot.fork)}
        for output in snapshot.outputs:
            stale.pop(output.outpoint, None)
        news = self._news(db, snapshot.outputs)
        places = self._places(db, {output.script_pubkey for output in news})
        touched = {output.outpoint.txid for output in news} | {coin.txid for coin in stale.values()}
        touched |= {output.spent.txid for output in news if output.spent is not None}
        # A spend that was mined again at the same height is stored unchanged, although its block is another.
        spends = (output.spent for output in snapshot.outputs if output.spent is not None)
        touched |= {one.txid for one in spends if one.block is not None and one.block.height > snapshot.fork}
        ours = select(ChainCoinRow).where(ChainCoinRow.chain == self.chain)
        coins = {
            OutPoint(coin.txid, coin.vout): coin
            for (coin,) in rows_in(db, ours, ChainCoinRow.txid, {output.outpoint.txid for output in news})
        }
        self._keep(db, [output for output in news if output.outpoint not in coins], raws)
        events: list[tuple[EventKind, Mapping[str, Any]]] = []
        for output in news:
            coin = coins.get(output.outpoint)
            if coin is None:
                coin = self._made(output, places[output.script_pubkey])
                db.add(coin)
                events.append((EventKind.DEPOSIT_SEEN, coin_data(coin)))
            before = coin.block_hash
            touched.update(_spender(coin))
            coin.height, coin.block_hash, coin.spent_by, coin.spent_height = _state_of(output)
            if coin.block_hash != before:
                is_waiting = coin.block_hash is None
                kind = EventKind.DEPOSIT_UNCONFIRMED if is_waiting else EventKind.DEPOSIT_CONFIRMED
                events.append((kind, coin_data(coin)))
        for coin in stale.values():
            touched.update(_spender(coin))
            if coin.height is None or coin.height > snapshot.fork:
                events.append((EventKind.DEPOSIT_REMOVED, coin_data(coin)))
                db.delete(coin)
            else:
                # Only the transaction that spent it is gone.
                coin.spent_by = coin.spent_height = None
        db.flush()
        tell_deposits(self.events, db, events)
        lost = {coin.txid for coin in stale.values()}
        note_held(db, self.chain, lost | {output.outpoint.txid for output in news})
        self._forget(db, lost)
        self._advance(db, places.values())
        return touched

    def waiting(self, db: Session) -> dict[OutPoint, bytes]:
        """The scripts of coins that are in no block, or whose spending is in none."""
        columns = select(ChainCoinRow.txid, ChainCoinRow.vout, ChainCoinRow.script_pubkey)
        ours = columns.where(ChainCoinRow.chain == self.chain)
        return {
            OutPoint(txid, vout): script
            for each in _WAITING
            for txid, vout, script in db.execute(ours.where(each))
        }

    def missing_transactions(self, db: Session, outputs: Iterable[FoundOutput]) -> set[str]:
        """The txids whose bytes are not stored yet."""
        txids = {output.outpoint.txid for output in outputs}
        ours = select(ChainTransactionRow.txid).where(ChainTransactionRow.chain == self.chain)
        return txids.difference(txid for (txid,) in rows_in(db, ours, ChainTransactionRow.txid, txids))

    def _stale(self, db: Session, fork: int) -> Iterable[ChainCoinRow]:
        """Coins whose state depends on the blocks above the fork or on the mempool."""
        which = (
            *_WAITING,
            ChainCoinRow.height > fork,
            ChainCoinRow.spent_by.is_not(None) & (ChainCoinRow.spent_height > fork),
        )
        ours = select(ChainCoinRow).where(ChainCoinRow.chain == self.chain)
        # Separate queries: each condition has its index.
        return [coin for each in which for coin in db.scalars(ours.where(each))]

    def _news(self, db: Session, outputs: Iterable[FoundOutput]) -> list[FoundOutput]:
        """Outputs that differ from the stored ones. A process that takes over reads all of them, and other
        writers wait for it.
        """
        outputs = tuple(outputs)
        query = select(
            ChainCoinRow.txid,
            ChainCoinRow.vout,
            ChainCoinRow.height,
            ChainCoinRow.block_hash,
            ChainCoinRow.spent_by,
            ChainCoinRow.spent_height,
        ).where(ChainCoinRow.chain == self.chain)
        txids = {output.outpoint.txid for output in outputs}
        stored = {tuple(row) for row in rows_in(db, query, ChainCoinRow.txid, txids)}
        return [
            output
            for output in outputs
            if (output.outpoint.txid, output.outpoint.vout, *_state_of(output)) not in stored
        ]

    def _places(self, db: Session, scripts: set[bytes]) -> dict[bytes, WatchedScriptRow]:
        ours = select(WatchedScriptRow).where(WatchedScriptRow.chain == self.chain)
        rows = rows_in(db, ours, WatchedScriptRow.script_pubkey, scripts)
        return {place.script_pubkey: place for (place,) in rows}

    def _keep(self, db: Session, outputs: Iterable[FoundOutput], raws: Mapping[str, bytes]) -> None:
        """Stores the bytes of the transactions that create the outputs."""
        missing = sorted(self.missing_transactions(db, outputs))
        if missing:
            rows = [{"chain": self.chain, "txid": txid, "raw": raws[txid]} for txid in missing]
            db.execute(insert(ChainTransactionRow), rows)

    def _made(self, output: FoundOutput, place: WatchedScriptRow) -> ChainCoinRow:
        """A new coin, in no block and unspent."""
        return ChainCoinRow(
            chain=self.chain,
            txid=output.outpoint.txid,
            vout=output.outpoint.vout,
            vault_id=place.vault_id,
            branch=place.branch,
            address_index=place.address_index,
            amount_sats=output.amount,
            script_pubkey=output.script_pubkey,
            is_coinbase=output.coinbase,
            first_seen_at=self.clock(),
        )

    def _forget(self, db: Session, txids: set[str]) -> None:
        """Deletes the bytes of transactions without a remaining coin: else replaced deposits would fill the
        disk.
        """
        is_left = exists().where(
            ChainCoinRow.chain == self.chain, ChainCoinRow.txid == ChainTransactionRow.txid
        )
        lost = delete(ChainTransactionRow).where(ChainTransactionRow.chain == self.chain, ~is_left)
        for some in chunks(txids):
            db.execute(
                lost.where(ChainTransactionRow.txid.in_(some)).execution_options(synchronize_session=False)
            )

    @staticmethod
    def _advance(db: Session, places: Iterable[WatchedScriptRow]) -> None:
        following: dict[tuple[str, int], int] = {}
        for place in places:
            # A profile has a single address.
            if place.vault_id is not None:
                branch = place.vault_id, place.branch
                following[branch] = max(following.get(branch, 0), index_after(place.address_index))
        for (vault,) in rows_in(db, select(VaultRow), VaultRow.id, {vault_id for vault_id, _ in following}):
            receive, change = (following.get((vault.id, branch), 0) for branch in (RECEIVE, CHANGE))
            # A proposal has taken the change's address before, so that the index need not move here.
            if receive > vault.next_receive_index or change:
                vault.next_receive_index = max(vault.next_receive_index, receive)
                vault.next_change_index = max(vault.next_change_index, change)
                watch_vault(db, vault)


_WAITING = (
    ChainCoinRow.height.is_(None),
    ChainCoinRow.spent_by.is_not(None) & ChainCoinRow.spent_height.is_(None),
)


def _spender(coin: ChainCoinRow) -> tuple[str, ...]:
    return () if coin.spent_by is None else (coin.spent_by,)


def _state_of(output: FoundOutput) -> tuple[int | None, str | None, str | None, int | None]:
    created = (None, None) if output.block is None else (output.block.height, output.block.hash)
    if output.spent is None:
        return *created, None, None
    return *created, output.spent.txid, None if output.spent.block is None else output.spent.block.height
