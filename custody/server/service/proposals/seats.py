"""Whose decision a proposal takes, and with which key: a place in the vault's quorum, or the profile that a forward is from."""

from dataclasses import dataclass
from typing import Final, cast

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from custody.schemas.keys import RevokedReason
from custody.schemas.proposals import ProposalStatus as Status
from custody.schemas.users import PermissionName
from custody.server.domain.caller import Caller, WorkspaceAccess
from custody.server.domain.errors import KeyIsRevoked, NotASigner, NotFound, PermissionDenied
from custody.server.domain.keys import may_move_on
from custody.server.service.keys.profiles import profile_policy
from custody.server.service.stored_vaults import policy_from
from custody.server.store.models import Key, Profile, Proposal, Vault, VaultSigner, WatchedScript
from multisig import Fingerprint, Policy, Psbt

ACTIVE: Final = "active"
APPROVER = frozenset({PermissionName.PAYMENT_APPROVE})


@dataclass(frozen=True)
class Seat:
    """The caller's part in a proposal. ``policy``: what its coins are of."""

    proposal: Proposal
    policy: Policy
    user_id: int
    key_id: str
    is_active: bool
    revoked_reason: str | None
    fingerprint: Fingerprint

    @property
    def status(self) -> Status:
        return Status(self.proposal.status)


def seat_of(db: Session, caller: Caller, access: WorkspaceAccess, proposal: Proposal | None) -> Seat:
    """Raises NotFound; PermissionDenied (a vault's movement needs PAYMENT_APPROVE); NotASigner."""
    if proposal is None or proposal.workspace_id != access.workspace_id:
        raise NotFound("There is no such proposal in this workspace.")
    if proposal.profile_key_id is not None:
        return _owners_seat(db, caller, proposal, proposal.profile_key_id)
    if not access.holds_any(APPROVER):
        raise PermissionDenied(
            f"Your role in this workspace does not carry {PermissionName.PAYMENT_APPROVE.value}."
        )
    return _signers_seat(db, caller, proposal)


def _owners_seat(db: Session, caller: Caller, proposal: Proposal, key_id: str) -> Seat:
    """A forward moves one member's own money, and is nobody else's to sign or to decline: not the vault's signers' either."""
    if proposal.created_by != caller.user_id:
        raise NotASigner("A forward is signed by the member whose money it moves, and by nobody else.")
    key = db.get_one(Key, key_id)
    policy = profile_policy(db, key, db.get_one(Profile, key_id))
    return Seat(
        proposal,
        policy,
        key.user_id,
        key.id,
        key.status == ACTIVE,
        key.revoked_reason,
        policy.key.fingerprint,
    )


def _signers_seat(db: Session, caller: Caller, proposal: Proposal) -> Seat:
    found = db.execute(_PLACE, {"user_id": caller.user_id, "vault_id": proposal.vault_id}).one_or_none()
    if found is None:
        raise NotASigner("You are not a signer of this vault.")
    fingerprint, key_id, status, revoked_reason, descriptor, chain = found
    return Seat(
        proposal,
        policy_from(descriptor, chain),
        caller.user_id,
        key_id,
        status == ACTIVE,
        revoked_reason,
        Fingerprint.from_hex(fingerprint),
    )


_PLACE = (
    select(
        VaultSigner.fingerprint,
        Key.id,
        Key.status,
        Key.revoked_reason,
        Vault.descriptor,
        Vault.chain,
    )
    .join(Key, Key.id == VaultSigner.key_id)
    .join(Vault, Vault.id == VaultSigner.vault_id)
    .where(VaultSigner.vault_id == bindparam("vault_id"), VaultSigner.user_id == bindparam("user_id"))
)


def require_live_key(db: Session, seat: Seat) -> None:
    """A superseded key still moves coins on to a vault of the same workspace, for signer sets are fixed (P47).

    A forward goes into such a vault by itself, and the money of a device that was replaced has no other way.
    Raises KeyIsRevoked.
    """
    if seat.is_active:
        return
    is_forward = seat.proposal.profile_key_id is not None
    if may_move_on(cast("RevokedReason | None", seat.revoked_reason)) and (
        is_forward or _stays_in_workspace(db, seat)
    ):
        return
    whose = "with this profile" if is_forward else "in this vault"
    raise KeyIsRevoked(f"Your key {whose} was revoked ({seat.revoked_reason}).")


def _stays_in_workspace(db: Session, seat: Seat) -> bool:
    scripts = {output.script_pubkey for output in Psbt.parse(seat.proposal.psbt).outputs}
    known = select(WatchedScript.script_pubkey).join(Vault, Vault.id == WatchedScript.vault_id)
    query = known.where(
        WatchedScript.chain == seat.policy.network.value,
        WatchedScript.script_pubkey.in_(scripts),
        Vault.workspace_id == seat.proposal.workspace_id,
    )
    return set(db.scalars(query)) == scripts
