"""Where a call may not put tokens: at a script of the workspace's own vaults from which nothing could move them again."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.server.domain.errors import Fault, Invalid
from custody.server.service.stored_vaults import address_script
from custody.server.service.tokens.arguments import Asked
from custody.server.store.models import Vault, WatchedScript
from multisig.tokens import Function

# What they bring to the address can leave it only by a call from there.
_MOVING = frozenset({Function.TRANSFER, Function.MINT, Function.TRANSFER_OWNERSHIP})


def require_reach(db: Session, vault: Vault, asked: Asked) -> None:
    """A vault is its ``address`` to every token; its deposit and change addresses call nothing. Raises Invalid."""
    if asked.function not in _MOVING or asked.address is None:
        return
    owner = db.scalars(
        select(Vault)
        .join(WatchedScript, WatchedScript.vault_id == Vault.id)
        .where(
            WatchedScript.chain == vault.chain,
            WatchedScript.script_pubkey == asked.address,
            # Whose the scripts of other workspaces are is told to nobody.
            Vault.workspace_id == vault.workspace_id,
        )
    ).one_or_none()
    if owner is None or asked.address == address_script(owner):
        return
    sentence = (
        f"Tokens at this address of vault {owner.name} could not be moved again: a vault calls from its own address alone. "
        f"Use {owner.address}."
    )
    raise Invalid(sentence, faults=(Fault(asked.address_at, sentence, "out-of-reach"),))
