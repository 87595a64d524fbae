"""A vault's controls beside its limits: it may be frozen, bound to the address book, or approved only by
members other than the maker. They are checked when a proposal is stored, and again when it is approved.

And whether enough signers are left for what is proposed, which would lock its coins in vain.
"""

from collections.abc import Collection

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from custody.server.errors import (
    NotASigner,
    NotInAddressBook,
    StateConflict,
    TooFewSigners,
    VaultFrozen,
)
from custody.server.keys.quorums import lacking_signers, signers_of
from custody.server.rules.credentials import WorkspaceAccess
from custody.server.rules.keys import may_move_on
from custody.server.store.models import AddressBookEntryRow, ProposalRow, VaultRow, WatchedScriptRow
from custody.server.vaults.stored import may_be_of_vault, replacement_of, vault_in
from multisig import Network, Psbt, encode_address
from multisig.tokens import Function, TokenCall, token_of_script

# Calls that give away tokens, or the right to mint them.
_GIVES = frozenset({Function.TRANSFER, Function.MINT, Function.TRANSFER_OWNERSHIP})


def vault_to_spend(db: Session, access: WorkspaceAccess, vault_id: str) -> VaultRow:
    """Raises NotFound, VaultFrozen."""
    vault = vault_in(db, access, vault_id)
    require_thawed(db, vault)
    return vault


def require_thawed(db: Session, vault: VaultRow) -> None:
    """Raises VaultFrozen for the vault, and for the one that replaces it."""
    for one in filter(None, (vault, replacement_of(db, vault))):
        if one.frozen_at is not None:
            raise VaultFrozen(
                f"The vault {one.name} is frozen: nothing is proposed, approved or sent until two members "
                "who may approve payments unfreeze it."
            )


def require_able_to_pay_on(db: Session, vault: VaultRow) -> None:
    """Raises TooFewSigners: what would go into this vault could not leave it."""
    if lacking_signers(db, {vault.id: vault.m}):
        raise TooFewSigners(
            f"Fewer than {vault.m} signers of the vault {vault.name} are left: what goes there cannot leave "
            "it. Replace that vault first (replace-vault)."
        )


def is_move(db: Session, vault: VaultRow, scripts: Collection[bytes]) -> bool:
    """Whether everything that a transaction with these output scripts pays goes to the vault that replaces
    this one, as two people confirmed: no limit counts it.
    """
    new = replacement_of(db, vault)
    if new is None:
        return False
    return watched(db, vault.chain, scripts, WatchedScriptRow.vault_id == new.id) == set(scripts)


def require_move(db: Session, vault: VaultRow, scripts: Collection[bytes]) -> None:
    """A vault that is replaced pays its replacement alone. Raises StateConflict, TooFewSigners (of the
    replacement).
    """
    replacement = replacement_of(db, vault)
    if replacement is None:
        return
    require_able_to_pay_on(db, replacement)
    if not is_move(db, vault, scripts):
        raise StateConflict(
            f"The vault {vault.name} is replaced by {replacement.name}: its coins move there as a whole, and "
            "it pays nothing else."
        )


def require_listed(db: Session, vault: VaultRow, psbt: bytes) -> None:
    """Where the vault is bound to the address book, each destination in the PSBT's bytes must be an entry of
    it. Excepted are the vault itself, and the one that replaces it.

    Raises NotInAddressBook, which names the addresses.
    """
    if vault.only_address_book:
        require_scripts_listed(db, vault, _destinations(psbt))


def require_scripts_listed(db: Session, vault: VaultRow, scripts: set[bytes]) -> None:
    """`require_listed` for output scripts."""
    if not vault.only_address_book:
        return
    network, new = Network(vault.chain), replacement_of(db, vault)
    ours = WatchedScriptRow.vault_id.in_([vault.id] if new is None else [vault.id, new.id])
    scripts = scripts - watched(db, vault.chain, scripts, ours)
    addresses = {encode_address(script, network) or f"script {script.hex()}" for script in scripts}
    query = select(AddressBookEntryRow.address).where(
        AddressBookEntryRow.workspace_id == vault.workspace_id, AddressBookEntryRow.address.in_(addresses)
    )
    elsewhere = addresses - set(db.scalars(query))
    if elsewhere:
        raise NotInAddressBook(
            f"The vault {vault.name} pays only addresses of the workspace's address book. Not in it: "
            f"{', '.join(sorted(elsewhere))}."
        )


def _destinations(psbt: bytes) -> set[bytes]:
    """The scripts that get bitcoin or tokens."""
    scripts: set[bytes] = set()
    for output in Psbt.parse(psbt).outputs:
        payload = token_of_script(output.script_pubkey)
        if isinstance(payload, TokenCall) and payload.function in _GIVES and payload.address is not None:
            scripts.add(payload.address)
        elif output.amount:
            scripts.add(output.script_pubkey)
    return scripts


def require_other_maker(db: Session, vault: VaultRow, proposal: ProposalRow, user_id: int) -> None:
    """Unless the vault lets makers approve, members cannot approve what they proposed, nor any version of it.
    Raises NotASigner.
    """
    if vault.maker_may_approve:
        return
    if user_id in _makers(db, proposal.family_id):
        raise NotASigner(
            f"You proposed this payment, or a version of it. In the vault {vault.name} others have to "
            "approve it."
        )


def _makers(db: Session, family_id: str) -> set[int]:
    return set(db.scalars(select(ProposalRow.created_by).where(ProposalRow.family_id == family_id)))


def require_signers(
    db: Session, vault: VaultRow, scripts: Collection[bytes], maker: int, family_id: str | None = None
) -> None:
    """Enough of the vault's signers must be able to sign a payment to these output scripts. ``maker``: who
    proposes it; ``family_id``: the family that it is another version of. Raises TooFewSigners.
    """
    all_signers = signers_of(db, [vault.id])[vault.id]
    makers = set() if vault.maker_may_approve else {maker}
    if makers and family_id is not None:
        makers |= _makers(db, family_id)
    signers = [one for one in all_signers if one.may_approve and one.user_id not in makers]
    active = sum(one.revoked_reason is None for one in signers)
    moving = sum(may_move_on(one.revoked_reason) for one in signers)
    if active >= vault.m or (active + moving >= vault.m and stay_in_workspace(db, vault, scripts)):
        return
    why = {
        "their key is lost": sum(one.is_lost for one in all_signers),
        "their key is superseded": sum(one.revoked_reason == "superseded" for one in all_signers),
        "their role does not approve payments": sum(not one.may_approve for one in all_signers),
        "they proposed it": sum(one.user_id in makers for one in all_signers),
    }
    reasons = ", ".join(f"{words} ({number})" for words, number in why.items() if number)
    raise TooFewSigners(
        f"{vault.m} signers of the vault {vault.name} have to sign this, and {active} of its {vault.n} can. "
        f"The others cannot: {reasons}."
    )


def stay_in_workspace(db: Session, vault: VaultRow, scripts: Collection[bytes]) -> bool:
    """Whether each of these output scripts is of a vault of the same workspace."""
    in_workspace = select(VaultRow.id).where(VaultRow.workspace_id == vault.workspace_id)
    ours = WatchedScriptRow.vault_id.in_(in_workspace)
    return watched(db, vault.chain, scripts, ours) == set(scripts)


def watched(db: Session, chain: str, scripts: Collection[bytes], whose: ColumnElement[bool]) -> set[bytes]:
    """Those of the scripts that are addresses of ours, of the vaults that the condition says."""
    likely = [script for script in scripts if may_be_of_vault(script)]
    if not likely:
        return set()
    known = WatchedScriptRow.chain == chain, WatchedScriptRow.script_pubkey.in_(likely)
    return set(db.scalars(select(WatchedScriptRow.script_pubkey).where(*known, whose)))
