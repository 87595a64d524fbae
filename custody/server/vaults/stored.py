"""Stored vaults: one of a workspace, its policy, which of its scripts are watched, and balances; and the
workspace that an event of the platform itself belongs to.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import (
    BindParameter,
    and_,
    bindparam,
    case,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.orm import Session

from custody.server.errors import NotFound
from custody.server.rules.credentials import WorkspaceAccess
from custody.server.store.models import (
    HELD,
    MOVING,
    ChainCoinRow,
    CoinLockRow,
    MovementRow,
    VaultRow,
    WatchedScriptRow,
    WorkspaceRow,
    table_of,
)
from custody.server.store.store import chunks, read_each, read_once
from multisig import CHANGE, MAX_INDEX, RECEIVE, Network, ScriptKind
from multisig import Vault as Policy
from multisig.script import classify

# Parsing a descriptor checks every key; a policy keeps its branch nodes, so that the next address is cheap.
CACHED_POLICIES = 1_024
# The vault's ``address`` on record. Deposits go there; of change, only that of a token's transactions.
ADDRESS_INDEX = 0
# The condition, in a statement over coins, that a lock is on the coin.
IS_LOCK_OF_COIN = and_(
    CoinLockRow.chain == ChainCoinRow.chain,
    CoinLockRow.txid == ChainCoinRow.txid,
    CoinLockRow.vout == ChainCoinRow.vout,
)
# BIP-44, "Address gap limit": what any wallet that restores from the descriptor looks for too.
GAP = 20


def vault_in(db: Session, access: WorkspaceAccess, vault_id: str) -> VaultRow:
    """Raises NotFound for a vault of another workspace too (P24)."""
    vault = read_once(db, ("vault", vault_id), lambda: db.get(VaultRow, vault_id))
    if vault is None or vault.workspace_id != access.workspace_id:
        raise NotFound("There is no such vault in this workspace.")
    return vault


def line_before(db: Session, vault: VaultRow) -> list[VaultRow]:
    """The vaults in whose place it is, the latest first."""
    line = [vault]
    while True:
        before = select(VaultRow).where(
            VaultRow.workspace_id == vault.workspace_id,
            VaultRow.replaced_by_id == line[-1].id,
            # Whatever is stored, it is no circle.
            VaultRow.id.not_in([each.id for each in line]),
        )
        predecessor = db.scalars(before).one_or_none()
        if predecessor is None:
            return line[1:]
        line.append(predecessor)


def replacement_of(db: Session, vault: VaultRow) -> VaultRow | None:
    """The vault that is in its place now: the last one where a replacement was replaced again."""
    line = {vault.id: vault}
    last = vault
    while last.replaced_by_id is not None and last.replaced_by_id not in line:
        last = db.get_one(VaultRow, last.replaced_by_id)
        line[last.id] = last
    return None if last is vault else last


def place_of(db: Session, workspace_id: int) -> WorkspaceAccess:
    """The workspace that an event of the platform itself belongs to, without any permission."""
    place = db.get_one(WorkspaceRow, workspace_id)
    return WorkspaceAccess(
        workspace_id=place.id,
        organisation_id=place.organisation_id,
        network=place.network,
        chain=place.chain,
        role_id=0,
        permissions=frozenset(),
    )


def policy_of(vault: VaultRow) -> Policy:
    """The same object for the same vault."""
    return policy_from(vault.descriptor, vault.chain)


@lru_cache(CACHED_POLICIES)
def policy_from(descriptor: str, chain: str) -> Policy:
    """The same, from a vault's columns."""
    return Policy.from_descriptor(descriptor, Network(chain))


def address_script(vault: VaultRow) -> bytes:
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


def watch_vault(db: Session, vault: VaultRow) -> None:
    """Adds the missing scripts up to the gap beyond the next unused index of both branches."""
    watch_branch(db, vault, RECEIVE, vault.next_receive_index)
    watch_branch(db, vault, CHANGE, vault.next_change_index)


def watch_branch(db: Session, vault: VaultRow, branch: int, next_index: int) -> None:
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


_LAST_WATCHED = select(func.max(WatchedScriptRow.address_index)).where(
    WatchedScriptRow.vault_id == bindparam("vault_id"), WatchedScriptRow.branch == bindparam("branch")
)
_WATCH = insert(table_of(WatchedScriptRow))


@dataclass(frozen=True)
class Balance:
    """Unspent coins in satoshi; `locked` counts those of either kind that a proposal holds."""

    confirmed: int = 0
    unconfirmed: int = 0
    locked: int = 0


def balances_of(db: Session, vault_ids: Collection[str]) -> dict[str, Balance]:
    """By vault id. No query sums all coins: the last movement has the confirmed balance; unconfirmed coins
    and held ones have indexes of their own.
    """

    def read(ids: Collection[str]) -> dict[str, Balance]:
        return {
            vault_id: Balance(int(last or 0) - int(leaving or 0), int(coming or 0), int(held or 0))
            for some in chunks(ids)
            for vault_id, last, coming, leaving, held in db.execute(_OF_VAULTS, {"ids": some})
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
        .select_from(ChainCoinRow)
        .outerjoin(CoinLockRow, IS_LOCK_OF_COIN)
        .where(
            ChainCoinRow.chain == chain,
            ChainCoinRow.vault_id.is_(None),
            ChainCoinRow.script_pubkey.in_(scripts),
            ChainCoinRow.spent_by.is_(None),
        )
    )
    return Balance(*map(int, db.execute(query).one()))


_IDS: BindParameter[str] = bindparam("ids", expanding=True)
_LAST_OF_VAULT = (
    select(MovementRow.balance_sats)
    .where(MovementRow.vault_id == VaultRow.id, MovementRow.height.is_not(None))
    .order_by(MovementRow.height.desc(), MovementRow.place.desc())
    .limit(1)
)
_COMING = func.sum(case((ChainCoinRow.spent_by.is_(None), ChainCoinRow.amount_sats), else_=0))
_LEAVING = func.sum(case((ChainCoinRow.height.is_not(None), ChainCoinRow.amount_sats), else_=0))
_IS_MOVING = ChainCoinRow.vault_id == VaultRow.id, text(MOVING)
_OF_VAULTS = select(
    VaultRow.id,
    _LAST_OF_VAULT.scalar_subquery(),
    select(_COMING).where(*_IS_MOVING).scalar_subquery(),
    select(_LEAVING).where(*_IS_MOVING).scalar_subquery(),
    select(func.sum(CoinLockRow.held_sats))
    .where(CoinLockRow.vault_id == VaultRow.id, text(HELD))
    .scalar_subquery(),
).where(VaultRow.id.in_(_IDS))
_LOCKS = table_of(CoinLockRow)


_COIN = (
    ChainCoinRow.chain == _LOCKS.c.chain,
    ChainCoinRow.txid == _LOCKS.c.txid,
    ChainCoinRow.vout == _LOCKS.c.vout,
)
_UNSPENT = select(ChainCoinRow.amount_sats).where(*_COIN, ChainCoinRow.spent_by.is_(None))
_NOTE_HELD = (
    update(_LOCKS)
    .where(_LOCKS.c.chain == bindparam("of_chain"), _LOCKS.c.txid.in_(bindparam("txids", expanding=True)))
    .values(
        vault_id=select(ChainCoinRow.vault_id).where(*_COIN).scalar_subquery(),
        held_sats=func.coalesce(_UNSPENT.scalar_subquery(), 0),
    )
)
_IS_CONFIRMED = ChainCoinRow.height.is_not(None)
_SUMS = tuple(
    func.coalesce(func.sum(case((which, ChainCoinRow.amount_sats), else_=0)), 0)
    for which in (_IS_CONFIRMED, ~_IS_CONFIRMED, CoinLockRow.txid.is_not(None))
)
