"""A vault's controls beside its limits: it may be frozen, bound to the address book, approved only by members
other than the maker, or by somebody who is named. They are checked when a proposal is stored, and again when
it is approved.

And whether enough signers are left for what is proposed, which would lock its coins in vain.
"""

from collections.abc import Collection, Iterable, Mapping

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from custody.server import errors
from custody.server.keys.quorums import able_among, able_of, approvers_of, decliners, makers_of, signers_of
from custody.server.people.names import approver_names, shown_approvers
from custody.server.rules.approvers import Approver, missing
from custody.server.rules.credentials import WorkspaceAccess
from custody.server.rules.keys import may_move_on
from custody.server.store.models import (
    AddressBookEntryRow,
    ProposalRow,
    VaultRow,
    WatchedScriptRow,
)
from custody.server.vaults.stored import may_be_of_vault, place_of, replacement_of, vault_in
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
            raise errors.VaultFrozen(
                f"The vault {one.name} is frozen: nothing is proposed, approved or sent until two members "
                "who may approve payments unfreeze it."
            )


def require_able_to_pay_on(db: Session, vault: VaultRow) -> None:
    """Raises TooFewSigners: what would go into this vault could not leave it."""
    able = able_of(db, [vault.id])[vault.id]
    if len(able) < vault.m:
        raise errors.TooFewSigners(
            f"Fewer than {vault.m} signers of the vault {vault.name} are left: what goes there cannot leave "
            "it. Replace that vault first (replace-vault)."
        )
    require_approvers(db, vault, able)


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
        raise errors.StateConflict(
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
        raise errors.NotInAddressBook(
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
    if user_id in makers_of(db, [proposal.family_id])[proposal.family_id]:
        raise errors.NotASigner(
            f"You proposed this payment, or a version of it. In the vault {vault.name} others have to "
            "approve it.",
            hint="Where it waits for your approval by name, have another member propose it.",
        )


def require_signers(
    db: Session, vault: VaultRow, scripts: Collection[bytes], maker: int, family_id: str | None = None
) -> None:
    """Enough of the vault's signers must be able to sign a payment to these output scripts. ``maker``: who
    proposes it; ``family_id``: the family that it is another version of. Raises TooFewSigners.
    """
    all_signers = signers_of(db, [vault.id])[vault.id]
    makers = set() if vault.maker_may_approve else {maker}
    if makers and family_id is not None:
        makers |= makers_of(db, [family_id])[family_id]
    signers = [one for one in all_signers if one.user_id not in makers]
    able = able_among(signers)
    if len(able) < vault.m or missing(vault.approvers, able):
        able = able_among(signers, stays=_in_workspace(db, vault, scripts) == set(scripts))
    if len(able) >= vault.m:
        require_approvers(db, vault, able)
        return
    out = [one for one in all_signers if (one.user_id, one.role_id) not in able]
    why = {
        "their key is lost": sum(one.is_lost for one in out),
        "their key is superseded": sum(may_move_on(one.revoked_reason) for one in out),
        "their role does not approve payments": sum(not one.may_approve for one in out),
        "they proposed it": sum(one.user_id in makers for one in out),
    }
    reasons = ", ".join(f"{words} ({number})" for words, number in why.items() if number)
    raise errors.TooFewSigners(
        f"{vault.m} signers of the vault {vault.name} have to sign this, and {len(able)} of its {vault.n} "
        f"can. The others cannot: {reasons}."
    )


def require_approvers(db: Session, vault: VaultRow, able: Iterable[Approver] | None = None) -> None:
    """Each approval that the vault asks for can come from these, or else from those of its signers who can
    sign now. Raises TooFewSigners.
    """
    if vault.approvers and able is None:
        able = able_of(db, [vault.id])[vault.id]
    lacking = missing(vault.approvers, able or ())
    if lacking:
        whose = approver_words(db, vault, lacking)
        raise errors.TooFewSigners(
            f"The vault {vault.name} asks for an approval from {whose}, and none of its signers who can sign "
            "this can give it.",
            hint="A signer with the role, or the member, has to have an active key in the vault and a role "
            "that approves; where makers may not approve, have another member propose it. Else change of "
            "whom the vault's controls ask an approval.",
        )


def approver_words(db: Session, vault: VaultRow, keys: Collection[str]) -> str:
    """For any reader: without addresses."""
    names = approver_names(db, place_of(db, vault.workspace_id), keys)
    return " and from ".join(each.words for each in shown_approvers(keys, names, ()))


def approvals_missing(db: Session, vault: VaultRow, proposal_id: str) -> list[str]:
    """Whose approval the proposal still needs, by the vault's present controls. The role that counts is the
    one that an approver had when they approved.
    """
    return missing(vault.approvers, approvers_of(db, proposal_id) if vault.approvers else ())


def approves_anew(db: Session, vault: VaultRow, proposal_id: str, approver: Approver) -> bool:
    """Whether one who has approved, and holds another role now, would give an approval that is missing."""
    before = approvers_of(db, proposal_id)
    after = [approver if each[0] == approver[0] else each for each in before]
    return len(missing(vault.approvers, after)) < len(missing(vault.approvers, before))


def lost_by_decline(db: Session, vault: VaultRow, proposal: ProposalRow) -> int:
    """How many have declined it, where one of them could approve it, and without them the others cannot
    complete it; else 0.
    """
    out = decliners(db, proposal.id)
    seats = signers_of(db, [vault.id])[vault.id]
    if not vault.maker_may_approve:
        makers = makers_of(db, [proposal.family_id])[proposal.family_id]
        seats = [seat for seat in seats if seat.user_id not in makers]
    able = able_among(seats, stays=psbt_stays(db, vault, proposal.psbt))
    left = [each for each in able if each[0] not in out]
    rest = [*left, *approvers_of(db, proposal.id)]
    is_short = len(dict(rest)) < proposal.m or missing(vault.approvers, rest) != []
    return len(out) if is_short and len(left) < len(able) else 0


def psbt_stays(db: Session, place: VaultRow | WorkspaceAccess, psbt: bytes) -> bool:
    """Whether the PSBT pays only vaults of the workspace."""
    return bool(staying(db, place, {"": psbt}))


def staying(db: Session, place: VaultRow | WorkspaceAccess, psbts: Mapping[str, bytes]) -> set[str]:
    """The keys of those that pay only vaults of the workspace."""
    paid = {key: {each.script_pubkey for each in Psbt.parse(psbt).outputs} for key, psbt in psbts.items()}
    ours = _in_workspace(db, place, set[bytes]().union(*paid.values()))
    return {key for key, scripts in paid.items() if scripts <= ours}


def _in_workspace(db: Session, place: VaultRow | WorkspaceAccess, scripts: Collection[bytes]) -> set[bytes]:
    """Those of the scripts that are addresses of its vaults."""
    vaults = select(VaultRow.id).where(VaultRow.workspace_id == place.workspace_id)
    return watched(db, place.chain, scripts, WatchedScriptRow.vault_id.in_(vaults))


def watched(db: Session, chain: str, scripts: Collection[bytes], whose: ColumnElement[bool]) -> set[bytes]:
    """Those of the scripts that are addresses of ours, of the vaults that the condition says."""
    likely = [script for script in scripts if may_be_of_vault(script)]
    if not likely:
        return set()
    known = WatchedScriptRow.chain == chain, WatchedScriptRow.script_pubkey.in_(likely)
    return set(db.scalars(select(WatchedScriptRow.script_pubkey).where(*known, whose)))
