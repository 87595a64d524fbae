"""A vault's controls beside its limits: it may be frozen, bound to the address book, or approved only by
members other than the maker.

They are checked when a proposal is stored, and again when it is approved.
"""

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.server.domain.credentials import WorkspaceAccess
from custody.server.domain.errors import (
    MakerMayNotApprove,
    NotInAddressBook,
    VaultFrozen,
)
from custody.server.service.stored_vaults import vault_in
from custody.server.store.models import AddressBookEntry, Proposal, Vault, WatchedScript
from multisig import Network, Psbt, encode_address
from multisig.tokens import Call, Function, token_of_script

# Calls that give away tokens, or the right to mint them.
_GIVES = frozenset({Function.TRANSFER, Function.MINT, Function.TRANSFER_OWNERSHIP})


def vault_to_spend(db: Session, access: WorkspaceAccess, vault_id: str) -> Vault:
    """Raises NotFound, VaultFrozen."""
    vault = vault_in(db, access, vault_id)
    require_thawed(vault)
    return vault


def require_thawed(vault: Vault) -> None:
    """Raises VaultFrozen."""
    if vault.frozen_at is not None:
        raise VaultFrozen(
            f"The vault {vault.name} is frozen: nothing is proposed, approved or sent until two members who "
            "may approve payments unfreeze it."
        )


def require_listed(db: Session, vault: Vault, psbt: bytes) -> None:
    """Where the vault is bound to the address book, each destination in the PSBT's bytes must be an entry of
    it. Excepted is the vault itself.

    Raises NotInAddressBook, which names the addresses.
    """
    if vault.only_address_book:
        require_scripts_listed(db, vault, _destinations(psbt))


def require_scripts_listed(db: Session, vault: Vault, scripts: set[bytes]) -> None:
    """`require_listed` for output scripts."""
    if not vault.only_address_book:
        return
    network = Network(vault.chain)
    own = select(WatchedScript.script_pubkey).where(
        WatchedScript.chain == vault.chain,
        WatchedScript.script_pubkey.in_(scripts),
        WatchedScript.vault_id == vault.id,
    )
    scripts = scripts - set(db.scalars(own))
    addresses = {encode_address(script, network) or f"script {script.hex()}" for script in scripts}
    query = select(AddressBookEntry.address).where(
        AddressBookEntry.workspace_id == vault.workspace_id, AddressBookEntry.address.in_(addresses)
    )
    elsewhere = addresses - set(db.scalars(query))
    if elsewhere:
        raise NotInAddressBook(
            f"The vault {vault.name} pays only addresses of the workspace's address book. Not in it: "
            f"{', '.join(sorted(elsewhere))}."
        )


def _destinations(psbt: bytes) -> set[bytes]:
    """The scripts that get bitcoin or tokens."""
    found: set[bytes] = set()
    for output in Psbt.parse(psbt).outputs:
        payload = token_of_script(output.script_pubkey)
        if isinstance(payload, Call) and payload.function in _GIVES and payload.address is not None:
            found.add(payload.address)
        elif output.amount:
            found.add(output.script_pubkey)
    return found


def require_other_maker(db: Session, vault: Vault, proposal: Proposal, user_id: int) -> None:
    """Unless the vault lets makers approve, members cannot approve what they proposed, nor any version of it.
    Raises MakerMayNotApprove.
    """
    if vault.maker_may_approve:
        return
    made = select(Proposal.id).where(Proposal.family_id == proposal.family_id, Proposal.created_by == user_id)
    if db.scalars(made.limit(1)).first() is not None:
        raise MakerMayNotApprove(
            f"You proposed this payment, or a version of it. In the vault {vault.name} others have to "
            "approve it."
        )
