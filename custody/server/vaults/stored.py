"""Stored vaults: one of a workspace, its policy, which of its scripts are watched, and balances; and the
workspace that an event of the platform itself belongs to.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    and_,
    bindparam,
    case,
    func,
    insert,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.orm import Session

from custody.server.errors import NotFound
from custody.server.rules.credentials import WorkspaceAccess
from custody.server.store import models
from custody.server.store.models.base import UtcTime
from custody.server.store.store import chunks, read_each, read_once
from multisig import CHANGE, MAX_INDEX, RECEIVE, Network, ScriptKind, decode_address
from multisig import Vault as Policy
from multisig.script import classify

# Parsing a descriptor checks every key; a policy keeps its branch nodes, so that the next address is cheap.
CACHED_POLICIES = 1_024
# The vault's ``address`` on record. Deposits go there; of change, only that of a token's transactions.
ADDRESS_INDEX = 0
# The condition, in a statement over coins, that a lock is on the coin.
IS_LOCK_OF_COIN = and_(
    models.CoinLockRow.chain == models.ChainCoinRow.chain,
    models.CoinLockRow.txid == models.ChainCoinRow.txid,
    models.CoinLockRow.vout == models.ChainCoinRow.vout,
)
IS_ASIDE_OF_COIN = and_(
    models.CoinAsideRow.chain == models.ChainCoinRow.chain,
    models.CoinAsideRow.txid == models.ChainCoinRow.txid,
    models.CoinAsideRow.vout == models.ChainCoinRow.vout,
)
_NOW: Final = bindparam("now", type_=UtcTime)


def lasts(now: datetime | BindParameter[datetime] = _NOW) -> ColumnElement[bool]:
    """The condition, of a row of what is set aside, that it is so still."""
    return or_(models.CoinAsideRow.until.is_(None), models.CoinAsideRow.until > now)


# BIP-44, "Address gap limit": what any wallet that restores from the descriptor looks for too.
GAP = 20


def vaults_at(
    db: Session, workspace_ids: Collection[int], network: Network, addresses: Iterable[str]
) -> dict[str, str]:
    """The names of these workspaces' vaults, by those of the addresses that are theirs."""
    by_script = {decode_address(each, network): each for each in addresses}
    if not by_script:
        return {}
    rows = db.execute(
        select(models.WatchedScriptRow.script_pubkey, models.VaultRow.name)
        .join(models.VaultRow, models.VaultRow.id == models.WatchedScriptRow.vault_id)
        .where(models.WatchedScriptRow.chain == network, models.WatchedScriptRow.script_pubkey.in_(by_script))
        .where(models.VaultRow.workspace_id.in_(workspace_ids))
    )
    return {by_script[script]: name for script, name in rows}


def vault_in(db: Session, access: WorkspaceAccess, vault_id: str) -> models.VaultRow:
    """Raises NotFound for a vault of another workspace too (P24)."""
    vault = read_once(db, ("vault", vault_id), lambda: db.get(models.VaultRow, vault_id))
    if vault is None or vault.workspace_id != access.workspace_id:
        raise NotFound("There is no such vault in this workspace.")
    return vault


def line_before(db: Session, vault: models.VaultRow) -> list[models.VaultRow]:
    """The vaults in whose place it is, the latest first."""
    line = [vault]
    while True:
        before = select(models.VaultRow).where(
            models.VaultRow.workspace_id == vault.workspace_id,
            models.VaultRow.replaced_by_id == line[-1].id,
            # Whatever is stored, it is no circle.
            models.VaultRow.id.not_in([each.id for each in line]),
        )
        predecessor = db.scalars(before).one_or_none()
        if predecessor is None:
            return line[1:]
        line.append(predecessor)


def replacement_of(db: Session, vault: models.VaultRow) -> models.VaultRow | None:
    """The vault that is in its place now: the last one where a replacement was replaced again."""
    line = {vault.id: vault}
    last = vault
    while last.replaced_by_id is not None and last.replaced_by_id not in line:
        last = db.get_one(models.VaultRow, last.replaced_by_id)
        line[last.id] = last
    return None if last is vault else last


def place_of(db: Session, workspace_id: int) -> WorkspaceAccess:
    """The workspace that an event of the platform itself belongs to, without any permission."""
    place = db.get_one(models.WorkspaceRow, workspace_id)
    return WorkspaceAccess(
        workspace_id=place.id,
        organisation_id=place.organisation_id,
        network=place.network,
        chain=place.chain,
        role_id=0,
        permissions=frozenset(),
    )


def policy_of(vault: models.VaultRow) -> Policy:
    """The same object for the same vault."""
    return policy_from(vault.descriptor, vault.chain)


@lru_cache(CACHED_POLICIES)
def policy_from(descriptor: str, chain: str) -> Policy:
    """The same, from a vault's columns."""
    return Policy.from_descriptor(descriptor, Network(chain))


def address_script(vault: models.VaultRow) -> bytes:
    """The output script of the vault's ``address``, by which tokens know the vault as holder, owner and
    caller.
    """
    return policy_of(vault).script_pubkey(RECEIVE, ADDRESS_INDEX)


def may_be_of_vault(script: bytes) -> bool:
    """Whether an output script is of the kind that vaults have; of any other, none needs to be looked for."""
    return classify(script) is ScriptKind.P2WSH


def index_after(index: int) -> int:
    """The index of the next address on the same branch. The last one is given out again."""
    return min(index + 1, MAX_INDEX)


def watch_vault(db: Session, vault: models.VaultRow) -> None:
    """Adds the missing scripts up to the gap beyond the next unused index of both branches."""
    watch_branch(db, vault, RECEIVE, vault.next_receive_index)
    watch_branch(db, vault, CHANGE, vault.next_change_index)


def watch_branch(db: Session, vault: models.VaultRow, branch: int, next_index: int) -> None:
    """Adds the scripts of one branch up to the gap beyond `next_index`."""
    last = db.scalar(_LAST_WATCHED, {"vault_id": vault.id, "branch": branch})
    policy = policy_of(vault)
    first = 0 if last is None else last + 1
    rows = [
        {
            "chain": vault.chain,
            "script_pubkey": policy.script_pubkey(branch, index),
            "vault_id": vault.id,
            "branch": branch,
            "address_index": index,
        }
        for index in range(first, min(next_index + GAP, MAX_INDEX + 1))
    ]
    if rows:
        db.execute(_WATCH, rows)


_LAST_WATCHED = select(func.max(models.WatchedScriptRow.address_index)).where(
    models.WatchedScriptRow.vault_id == bindparam("vault_id"),
    models.WatchedScriptRow.branch == bindparam("branch"),
)
_WATCH = insert(models.table_of(models.WatchedScriptRow))


@dataclass(frozen=True)
class Balance:
    """Unspent coins in satoshi; `locked` counts those of either kind that a proposal holds, `aside` those
    that are set aside and that none holds.
    """

    confirmed: int = 0
    unconfirmed: int = 0
    locked: int = 0
    aside: int = 0


def balances_of(db: Session, vault_ids: Collection[str], now: datetime) -> dict[str, Balance]:
    """By vault id. No query sums all coins: the last movement has the confirmed balance; unconfirmed coins
    and held ones have indexes of their own.
    """

    def read(ids: Collection[str]) -> dict[str, Balance]:
        return {
            vault_id: Balance((last or 0) - int(leaving or 0), *(int(sats or 0) for sats in sums))
            for some in chunks(ids)
            for vault_id, last, leaving, *sums in db.execute(_OF_VAULTS, {"ids": some, "now": now})
        }

    return read_each(db, "balance", vault_ids, read)


def note_held(db: Session, chain: str, txids: Iterable[str]) -> None:
    """Updates what the locks on coins of these transactions hold of a vault: after the coin of one has
    changed.
    """
    for some in chunks(set(txids)):
        db.execute(_NOTE_HELD, {"of_chain": chain, "txids": some})


def balance_outside_vaults(db: Session, chain: str, scripts: Collection[bytes]) -> Balance:
    """The balance of the coins at these scripts that belong to no vault."""
    query = (
        select(*_SUMS)
        .select_from(models.ChainCoinRow)
        .outerjoin(models.CoinLockRow, IS_LOCK_OF_COIN)
        .where(
            models.ChainCoinRow.chain == chain,
            models.ChainCoinRow.vault_id.is_(None),
            models.ChainCoinRow.script_pubkey.in_(scripts),
            models.ChainCoinRow.spent_by.is_(None),
        )
    )
    return Balance(*map(int, db.execute(query).one()))


_IDS: BindParameter[str] = bindparam("ids", expanding=True)
_LAST_OF_VAULT = (
    select(models.MovementRow.balance_sats)
    .where(models.MovementRow.vault_id == models.VaultRow.id, models.MovementRow.height.is_not(None))
    .order_by(models.MovementRow.height.desc(), models.MovementRow.place.desc())
    .limit(1)
)
_COMING = func.sum(case((models.ChainCoinRow.spent_by.is_(None), models.ChainCoinRow.amount_sats), else_=0))
_LEAVING = func.sum(case((models.ChainCoinRow.height.is_not(None), models.ChainCoinRow.amount_sats), else_=0))
_IS_MOVING = models.ChainCoinRow.vault_id == models.VaultRow.id, text(models.MOVING)
_OF_VAULTS = select(
    models.VaultRow.id,
    _LAST_OF_VAULT.scalar_subquery(),
    select(_LEAVING).where(*_IS_MOVING).scalar_subquery(),
    select(_COMING).where(*_IS_MOVING).scalar_subquery(),
    select(func.sum(models.CoinLockRow.held_sats))
    .where(models.CoinLockRow.vault_id == models.VaultRow.id, text(models.HELD))
    .scalar_subquery(),
    select(func.sum(models.ChainCoinRow.amount_sats))
    .join(models.CoinAsideRow, IS_ASIDE_OF_COIN)
    .outerjoin(models.CoinLockRow, IS_LOCK_OF_COIN)
    .where(
        models.CoinAsideRow.vault_id == models.VaultRow.id,
        lasts(),
        models.ChainCoinRow.spent_by.is_(None),
        models.CoinLockRow.txid.is_(None),
    )
    .correlate(models.VaultRow)
    .scalar_subquery(),
).where(models.VaultRow.id.in_(_IDS))
_LOCKS = models.table_of(models.CoinLockRow)


_COIN = (
    models.ChainCoinRow.chain == _LOCKS.c.chain,
    models.ChainCoinRow.txid == _LOCKS.c.txid,
    models.ChainCoinRow.vout == _LOCKS.c.vout,
)
_UNSPENT = select(models.ChainCoinRow.amount_sats).where(*_COIN, models.ChainCoinRow.spent_by.is_(None))
_NOTE_HELD = (
    update(_LOCKS)
    .where(_LOCKS.c.chain == bindparam("of_chain"), _LOCKS.c.txid.in_(bindparam("txids", expanding=True)))
    .values(
        vault_id=select(models.ChainCoinRow.vault_id).where(*_COIN).scalar_subquery(),
        held_sats=func.coalesce(_UNSPENT.scalar_subquery(), 0),
    )
)
_IS_CONFIRMED = models.ChainCoinRow.height.is_not(None)
_SUMS = tuple(
    func.coalesce(func.sum(case((which, models.ChainCoinRow.amount_sats), else_=0)), 0)
    for which in (_IS_CONFIRMED, ~_IS_CONFIRMED, models.CoinLockRow.txid.is_not(None))
)
