"""Keeps the stored coins in step with the chain: deposits, spends, reorganisations and evictions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from custody.schemas.webhooks import EventKind
from custody.server.chain.backend import FoundOutput
from custody.server.domain.ports import Clock
from custody.server.service.network.snapshot import Snapshot
from custody.server.service.stored_vaults import index_after, note_held, watch_vault
from custody.server.service.webhook_events import Deposits, ToldCoin
from custody.server.store.models import ChainCoin, ChainTransaction, Vault, WatchedScript
from custody.server.store.store import chunks
from multisig import CHANGE, RECEIVE, OutPoint


@dataclass(frozen=True)
class Coins:
    """Writes one chain's coins."""

    chain: str
    clock: Clock
    told: Deposits

    def apply(self, db: Session, snapshot: Snapshot, raws: Mapping[str, bytes]) -> set[str]:
        """Updates the coins to the snapshot. `raws`: by txid, the bytes of transactions that create coins not
        stored yet. Returns the txids of all transactions that create or spend a changed coin.

        A payment to an address advances the vault's next unused index, and with it the watched gap.
        """
        stale = {OutPoint(coin.txid, coin.vout): coin for coin in self._stale(db, snapshot.fork)}
        for found in snapshot.outputs:
            stale.pop(found.outpoint, None)
        news = self._news(db, snapshot.outputs)
        places = self._places(db, {found.script_pubkey for found in news})
        touched = {found.outpoint.txid for found in news} | {coin.txid for coin in stale.values()}
        touched |= {found.spent.txid for found in news if found.spent is not None}
        # A spend that was mined again at the same height is stored unchanged, although its block is another.
        spends = (found.spent for found in snapshot.outputs if found.spent is not None)
        touched |= {one.txid for one in spends if one.height is not None and one.height > snapshot.fork}
        coins = self._stored(db, {found.outpoint.txid for found in news})
        self._keep(db, [found for found in news if found.outpoint not in coins], raws)
        told: list[ToldCoin] = []
        for found in news:
            coin = coins.get(found.outpoint)
            if coin is None:
                coin = self._made(found, places[found.script_pubkey])
                db.add(coin)
                told.append(ToldCoin.of(coin, EventKind.DEPOSIT_SEEN))
            before = coin.block_hash
            touched.update(_spender(coin))
            _update(coin, found)
            if coin.block_hash != before:
                is_waiting = coin.block_hash is None
                kind = EventKind.DEPOSIT_UNCONFIRMED if is_waiting else EventKind.DEPOSIT_CONFIRMED
                told.append(ToldCoin.of(coin, kind))
        for coin in stale.values():
            touched.update(_spender(coin))
            if coin.height is None or coin.height > snapshot.fork:
                told.append(ToldCoin.of(coin, EventKind.DEPOSIT_REMOVED))
                db.delete(coin)
            else:
                # Only the transaction that spent it is gone.
                coin.spent_by = coin.spent_height = None
        db.flush()
        self.told.tell(db, told)
        note_held(
            db,
            self.chain,
            {*(found.outpoint.txid for found in news), *(coin.txid for coin in stale.values())},
        )
        self._forget(db, {coin.txid for coin in stale.values()})
        self._advance(db, places.values())
        return touched

    def waiting(self, db: Session) -> dict[OutPoint, bytes]:
        """The scripts of coins that are in no block, or whose spending is in none."""
        columns = select(ChainCoin.txid, ChainCoin.vout, ChainCoin.script_pubkey)
        ours = columns.where(ChainCoin.chain == self.chain)
        return {
            OutPoint(txid, vout): script
            for each in _WAITING
            for txid, vout, script in db.execute(ours.where(each))
        }

    def missing_transactions(self, db: Session, outputs: Iterable[FoundOutput]) -> set[str]:
        """The txids whose bytes are not stored yet."""
        txids = {found.outpoint.txid for found in outputs}
        ours = select(ChainTransaction.txid).where(ChainTransaction.chain == self.chain)
        known = (db.scalars(ours.where(ChainTransaction.txid.in_(some))) for some in chunks(txids))
        return txids.difference(*known)

    def _stored(self, db: Session, txids: set[str]) -> dict[OutPoint, ChainCoin]:
        """The coins that these transactions made."""
        ours = select(ChainCoin).where(ChainCoin.chain == self.chain)
        found = (db.scalars(ours.where(ChainCoin.txid.in_(some))) for some in chunks(txids))
        return {OutPoint(coin.txid, coin.vout): coin for some in found for coin in some}

    def _stale(self, db: Session, fork: int) -> Iterable[ChainCoin]:
        """Coins whose state depends on the blocks above the fork or on the mempool."""
        which = (
            *_WAITING,
            ChainCoin.height > fork,
            ChainCoin.spent_by.is_not(None) & (ChainCoin.spent_height > fork),
        )
        ours = select(ChainCoin).where(ChainCoin.chain == self.chain)
        # Separate queries: each condition has its index.
        return [coin for each in which for coin in db.scalars(ours.where(each))]

    def _news(self, db: Session, outputs: Iterable[FoundOutput]) -> list[FoundOutput]:
        """Outputs that differ from the stored ones. A process that takes over reads all of them, and other
        writers wait for it.
        """
        outputs = tuple(outputs)
        query = select(
            ChainCoin.txid,
            ChainCoin.vout,
            ChainCoin.height,
            ChainCoin.block_hash,
            ChainCoin.spent_by,
            ChainCoin.spent_height,
        ).where(ChainCoin.chain == self.chain)
        stored = {
            tuple(row)
            for some in chunks({found.outpoint.txid for found in outputs})
            for row in db.execute(query.where(ChainCoin.txid.in_(some)))
        }
        return [
            found
            for found in outputs
            if (found.outpoint.txid, found.outpoint.vout, *_state_of(found)) not in stored
        ]

    def _places(self, db: Session, scripts: set[bytes]) -> dict[bytes, WatchedScript]:
        ours = select(WatchedScript).where(WatchedScript.chain == self.chain)
        return {
            place.script_pubkey: place
            for some in chunks(scripts)
            for place in db.scalars(ours.where(WatchedScript.script_pubkey.in_(some)))
        }

    def _keep(self, db: Session, outputs: Iterable[FoundOutput], raws: Mapping[str, bytes]) -> None:
        """Stores the bytes of the transactions that create the outputs."""
        missing = sorted(self.missing_transactions(db, outputs))
        if missing:
            rows = [{"chain": self.chain, "txid": txid, "raw": raws[txid]} for txid in missing]
            db.execute(insert(ChainTransaction), rows)

    def _made(self, found: FoundOutput, place: WatchedScript) -> ChainCoin:
        """A new coin, in no block and unspent."""
        return ChainCoin(
            chain=self.chain,
            txid=found.outpoint.txid,
            vout=found.outpoint.vout,
            vault_id=place.vault_id,
            branch=place.branch,
            address_index=place.address_index,
            amount_sats=found.amount,
            script_pubkey=found.script_pubkey,
            is_coinbase=found.coinbase,
            first_seen_at=self.clock(),
        )

    def _forget(self, db: Session, txids: set[str]) -> None:
        """Deletes the bytes of transactions without a remaining coin: else replaced deposits would fill the
        disk.
        """
        coins = select(ChainCoin.txid).where(ChainCoin.chain == self.chain)
        for some in chunks(txids):
            left = set(db.scalars(coins.where(ChainCoin.txid.in_(some))))
            ours = ChainTransaction.chain == self.chain
            db.execute(
                delete(ChainTransaction).where(ours, ChainTransaction.txid.in_(sorted(set(some) - left)))
            )

    @staticmethod
    def _advance(db: Session, places: Iterable[WatchedScript]) -> None:
        following: dict[tuple[str, int], int] = {}
        for place in places:
            # A profile has a single address.
            if place.vault_id is not None:
                branch = place.vault_id, place.branch
                following[branch] = max(following.get(branch, 0), index_after(place.address_index))
        vault_ids = {vault_id for vault_id, _ in following}
        for some in chunks(vault_ids):
            for vault in db.scalars(select(Vault).where(Vault.id.in_(some))):
                before = vault.next_receive_index, vault.next_change_index
                receive, change = (following.get((vault.id, branch), 0) for branch in (RECEIVE, CHANGE))
                vault.next_receive_index = max(vault.next_receive_index, receive)
                vault.next_change_index = max(vault.next_change_index, change)
                if (vault.next_receive_index, vault.next_change_index) != before:
                    watch_vault(db, vault)


_WAITING = (
    ChainCoin.height.is_(None),
    ChainCoin.spent_by.is_not(None) & ChainCoin.spent_height.is_(None),
)


def _spender(coin: ChainCoin) -> tuple[str, ...]:
    return () if coin.spent_by is None else (coin.spent_by,)


def _update(coin: ChainCoin, found: FoundOutput) -> None:
    coin.height, coin.block_hash, coin.spent_by, coin.spent_height = _state_of(found)


def _state_of(found: FoundOutput) -> tuple[int | None, str | None, str | None, int | None]:
    spent = (None, None) if found.spent is None else (found.spent.txid, found.spent.height)
    return found.height, found.block_hash, *spent
