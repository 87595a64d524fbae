"""Storing the proposal of a token's transaction, with its coins locked and its limits asked."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from custody.schemas.proposals import TxType
from custody.server.domain.caller import Caller, WorkspaceAccess
from custody.server.domain.credentials import new_id
from custody.server.domain.ports import RandomBytes
from custody.server.service.limits.limits import Limits, Movement
from custody.server.service.limits.token_usage import TokenMovement
from custody.server.service.proposals.coins import lock_coins, require_unchanged
from custody.server.service.proposals.drafting import Draft
from custody.server.service.proposals.storing import Terms, store_proposal
from custody.server.store.models import Proposal, Vault


@dataclass(frozen=True)
class Wanted:
    """What a token's proposal says beside its transaction. ``movement``: of satoshi, its fee; ``moved``: of the token."""

    tx_type: TxType
    payload: bytes
    movement: Movement
    moved: TokenMovement | None = None
    recipients: tuple[str, ...] = ()
    contract_ids: tuple[str, ...] = ()
    counts_for_role: bool = True


class TokenProposals:
    def __init__(self, random: RandomBytes, limits: Limits) -> None:
        self._random = random
        self._limits = limits

    def store(
        self, db: Session, caller: Caller, access: WorkspaceAccess, vault: Vault, draft: Draft, wanted: Wanted
    ) -> Proposal:
        """PENDING, the first of its family.

        Raises Outdated where a coin has gone, or this transaction was proposed, meanwhile; LockedFunds, RoleLimitExceeded,
        VaultLimitExceeded, PolicyUnavailable.
        """
        require_unchanged(db, vault.chain, draft.holdings)
        self._require_limits(db, caller, access, vault, wanted)
        proposal_id = new_id(self._random)
        lock_coins(db, vault.chain, [holding.outpoint for holding in draft.holdings], proposal_id)
        terms = Terms(
            proposal_id,
            proposal_id,
            caller.user_id,
            None,
            wanted.movement.amount,
            wanted.movement.proposed_at,
            tx_type=wanted.tx_type,
            recipients=wanted.recipients,
            op_return_hex=wanted.payload.hex(),
            contract_ids=wanted.contract_ids,
            counts_for_role=wanted.counts_for_role,
        )
        proposal = store_proposal(db, vault, draft, terms)
        db.flush()
        return proposal

    def _require_limits(
        self, db: Session, caller: Caller, access: WorkspaceAccess, vault: Vault, wanted: Wanted
    ) -> None:
        if wanted.counts_for_role:
            self._limits.require_role(db, caller, access, wanted.movement)
        self._limits.require_vault(db, vault, wanted.movement)
        if wanted.moved is not None:
            self._limits.require_token(db, caller, access, vault, wanted.moved)
