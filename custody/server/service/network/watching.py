"""Which scripts of a vault the chain is watched for: those in use and a gap beyond."""

from sqlalchemy import bindparam, func, insert, select
from sqlalchemy.orm import Session

from custody.server.service.vaults.descriptors import policy_of
from custody.server.store.models import Vault, WatchedScript, table_of
from multisig import CHANGE, RECEIVE

# BIP-44, "Address gap limit": what any wallet that restores from the descriptor looks for too.
GAP = 20


def watch_vault(db: Session, vault: Vault) -> None:
    """Adds what is missing up to the gap beyond the next unused index of both chains."""
    watch_branch(db, vault, RECEIVE, vault.next_receive_index)
    watch_branch(db, vault, CHANGE, vault.next_change_index)


def watch_branch(db: Session, vault: Vault, branch: int, next_index: int) -> None:
    """Adds the scripts of one chain up to the gap beyond `next_index`."""
    last = db.scalar(_LAST, {"vault_id": vault.id, "branch": branch})
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
        for index in range(first, next_index + GAP)
    ]
    if rows:
        db.execute(_ADD, rows)


def derive_ahead(vault: Vault) -> None:
    """Works out what will be watched next once the next change address is taken. The keys are kept (`multisig.derivation`), so that
    nobody waits for them in the writers' turn.
    """
    policy_of(vault).script_pubkey(CHANGE, vault.next_change_index + GAP)


_LAST = select(func.max(WatchedScript.address_index)).where(
    WatchedScript.vault_id == bindparam("vault_id"), WatchedScript.branch == bindparam("branch")
)
_ADD = insert(table_of(WatchedScript))
