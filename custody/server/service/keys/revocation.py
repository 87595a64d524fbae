"""Revoking a key: who may, what it must not take from a vault, and what becomes of the approvals it gave."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from custody.schemas import keys as wire
from custody.schemas.keys import RevokedReason
from custody.schemas.proposals import ProposalStatus, TxType
from custody.schemas.users import PermissionName
from custody.server.domain.audit import Category
from custody.server.domain.credentials import Caller
from custody.server.domain.errors import NotFound, PermissionDenied, SecondPersonNeeded
from custody.server.domain.keys import changes_anything
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.keys.keys import key_shape
from custody.server.service.keys.profiles import reason_of
from custody.server.service.keys.quorums import require_quorums, vaults_left_short
from custody.server.service.lifecycle import Lifecycle
from custody.server.service.system import OPERATOR, PLATFORM, place_of
from custody.server.service.webhook_events import WebhookEvents, event_data, tell_revoked
from custody.server.store.models import (
    Decision,
    Key,
    Membership,
    Proposal,
    RolePermission,
    SecondPersonRule,
    Signature,
    Workspace,
)
from multisig import Psbt


class KeyRevocation:
    def __init__(self, clock: Clock, audit: AuditLog, lifecycle: Lifecycle, events: WebhookEvents) -> None:
        self._clock = clock
        self._audit = audit
        self._lifecycle = lifecycle
        self._events = events

    def revoke(
        self, db: Session, caller: Caller, request: wire.RevokeKeyRequest, *, agreed_in: int | None = None
    ) -> wire.Key:
        """The owner's own key for either reason, or a member's as lost. A repeated request changes nothing.

        ``agreed_in``: the organisation in which a second person confirms it. Raises NotFound,
        PermissionDenied, SecondPersonNeeded (a member's), StateConflict (a lost key stays lost),
        VaultsLeftShort (unless forced).
        """
        key = db.get(Key, request.key_id)
        if key is None:
            raise _no_such_key()
        if key.user_id != caller.user_id:
            served = _require_administrator(db, caller, key, request.reason)
            _require_second_person(db, served, agreed_in)
        return self._revoke(db, caller, key, request)

    def revoke_for_operator(self, db: Session, request: wire.RevokeKeyRequest) -> wire.Key:
        """Any member's key, by the operator, who has the platform's own database. Raises as `revoke`, but for
        the permission.
        """
        key = db.get(Key, request.key_id)
        if key is None:
            raise _no_such_key()
        return self._revoke(db, OPERATOR, key, request)

    def _revoke(self, db: Session, caller: Caller, key: Key, request: wire.RevokeKeyRequest) -> wire.Key:
        reason = reason_of(key)
        if not changes_anything(reason, request.reason):
            return key_shape(db, key)
        short = vaults_left_short(db, without_key=key.id)
        if not request.force:
            seer = None if caller is OPERATOR else caller.user_id
            require_quorums(db, seer, short)
        key.status, key.revoked_reason, key.updated_at = "revoked", request.reason, self._clock()
        db.flush()
        if request.reason == "lost":
            self._withdraw_approvals(db, caller, key)
        tell_revoked(self._events, db, key)
        self._audit.record(
            db, caller, Category.KEYS, "KEY_REVOKED", _described(key, [vault.id for vault in short])
        )
        return key_shape(db, key)

    def _withdraw_approvals(self, db: Session, caller: Caller, key: Key) -> None:
        """The device may have been in other hands for any time: what it approved and is still pending has to
        be approved again.

        A proposal that has met its threshold stays on its way. A withdrawn signature is still valid on the
        chain for anyone who kept a copy; it is one of M, and the platform no longer counts it. A proof is
        signed anew by all: the rows hold its message's signatures alone, and its PSBT is made from the rows.
        """
        signed = select(Signature.proposal_id).where(Signature.key_id == key.id)
        query = select(Proposal).where(
            Proposal.status == ProposalStatus.PENDING.value, Proposal.id.in_(signed)
        )
        for proposal in db.scalars(query.order_by(Proposal.id)).all():
            keys = {key.id}
            if proposal.tx_type == TxType.PROOF.value:
                keys.update(db.scalars(select(Signature.key_id).where(Signature.proposal_id == proposal.id)))
            for row in (Signature, Decision):
                db.execute(delete(row).where(row.proposal_id == proposal.id, row.key_id.in_(keys)))
            proposal.psbt = _with_what_is_left(db, proposal)
            proposal.withdrawn_signatures += len(keys)
            self._lifecycle.touch(db, proposal)
            also = f"; all {len(keys)} signers of the proof sign it again" if len(keys) > 1 else ""
            description = f"proposal {proposal.id}, key {key.id} is lost{also}"
            place = place_of(db, proposal.workspace_id)
            known = _name_known_in(db, caller, key, proposal.workspace_id)
            told = event_data(proposal, user_id=key.user_id)
            self._audit.record(
                db, known, Category.SIGNING, "SIGNATURE_WITHDRAWN", description, access=place, told=told
            )


def _name_known_in(db: Session, caller: Caller, key: Key, workspace_id: int) -> Caller:
    """A former member's approval may wait in another tenant's workspace, whose log must not name users
    unknown to it (P24).

    The trace id still leads the platform's operator to the user.
    """
    if caller is OPERATOR or caller.user_id == key.user_id:
        return caller
    place = select(Membership.id).where(
        Membership.user_id == caller.user_id, Membership.workspace_id == workspace_id
    )
    is_member = db.scalars(place).first() is not None
    return caller if is_member else replace(PLATFORM, trace_id=caller.trace_id)


def _with_what_is_left(db: Session, proposal: Proposal) -> bytes:
    left: dict[int, dict[bytes, bytes]] = {}
    for row in db.scalars(select(Signature).where(Signature.proposal_id == proposal.id)):
        left.setdefault(row.input_index, {})[row.public_key] = row.signature
    return Psbt.parse(proposal.psbt).without_signatures().with_signatures(left).to_bytes()


def _require_administrator(db: Session, caller: Caller, key: Key, reason: RevokedReason) -> set[int]:
    """A key serves every workspace of its owner on the network: only one who manages the users of them all
    may stop it. Those workspaces.
    """
    if not _are_colleagues(db, caller.user_id, key.user_id):
        raise _no_such_key()
    if reason != "lost":
        raise PermissionDenied("Only its owner replaces a key; an administrator marks it lost.")
    served = _workspaces_on(db, key.user_id, key.network)
    if not served or not served <= _managed_by(db, caller.user_id):
        needed = PermissionName.MANAGE_USERS
        raise PermissionDenied(
            f"To mark a member's key lost you need {needed} in each of their workspaces on {key.network}."
        )
    return served


def _require_second_person(db: Session, served: set[int], agreed_in: int | None) -> None:
    """A lost key stays lost, and takes its owner's voice from every vault: where an organisation that the key
    serves has the rule, two take it. The owner alone stops a key at once, and one signer freezes a vault.

    Raises SecondPersonNeeded.
    """
    rules = (
        select(SecondPersonRule)
        .join(Workspace, Workspace.organisation_id == SecondPersonRule.organisation_id)
        .where(Workspace.id.in_(served))
        .order_by(SecondPersonRule.organisation_id)
    )
    for rule in db.scalars(rules):
        if rule.organisation_id != agreed_in:
            raise SecondPersonNeeded(
                f"In an organisation that this key serves a second person, in the role {rule.role_name}, "
                "confirms that a member's key is lost. Its owner needs nobody."
            )


def _workspaces_on(db: Session, user_id: int, network: str) -> set[int]:
    query = (
        select(Membership.workspace_id)
        .join(Workspace, Workspace.id == Membership.workspace_id)
        .where(Membership.user_id == user_id, Workspace.network == network)
    )
    return set(db.scalars(query))


def _managed_by(db: Session, user_id: int) -> set[int]:
    query = (
        select(Membership.workspace_id)
        .join(RolePermission, RolePermission.role_id == Membership.role_id)
        .where(Membership.user_id == user_id, RolePermission.permission == PermissionName.MANAGE_USERS.value)
    )
    return set(db.scalars(query))


def _are_colleagues(db: Session, user_id: int, other_id: int) -> bool:
    def organisations(member: int) -> set[int]:
        joined = select(Workspace.organisation_id).join(Membership, Membership.workspace_id == Workspace.id)
        return set(db.scalars(joined.where(Membership.user_id == member)))

    return bool(organisations(user_id) & organisations(other_id))


def _described(key: Key, short: Sequence[str]) -> str:
    text = f"key {key.id} of user {key.user_id}, {key.revoked_reason}"
    return f"{text}; too few signers are left in vault {', '.join(short)}" if short else text


def _no_such_key() -> NotFound:
    return NotFound("There is no such key.")
