"""Child pays for parent (CPFP): spends the parent's unconfirmed change back to the vault at a fee for which
miners take both.

For a transaction whose signers cannot be asked to sign its coins again. The child is a family of its own, for
it is no version of the payment: it confirms with its parent or not at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from custody.schemas.proposals import CreatePsbtRequest, CreatePsbtResponse, TxType
from custody.schemas.proposals import ProposalStatus as Status
from custody.server.domain.credentials import Caller, WorkspaceAccess, new_id
from custody.server.domain.errors import InsufficientFunds, Invalid, StateConflict
from custody.server.domain.fees import PricedTransaction, fee_for_parents
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.domain.selection import RandomSource, Selection, choose_locktime
from custody.server.service.audit.log import AuditLog
from custody.server.service.backends import Market
from custody.server.service.keys.quorums import AdvisoriesInForce
from custody.server.service.limits.limits import Limits, Movement
from custody.server.service.proposals.bounds import vault_to_spend
from custody.server.service.proposals.coins import (
    Utxo,
    coins_to_spend,
    is_locked,
    lock_coins,
    require_makers_stay,
    require_unchanged,
    utxo_of,
)
from custody.server.service.proposals.drafting import Draft, Parts, plan_of, require_sane_fee
from custody.server.service.proposals.families import KINDS, change_of, find_proposal, priced
from custody.server.service.proposals.mempools import MAX_TOGETHER, require_taken_by_nodes
from custody.server.service.proposals.payments import Intent, read_rate
from custody.server.service.proposals.storing import Terms, record_proposal, store_proposal
from custody.server.service.requests.changes import Changes
from custody.server.service.stored_vaults import policy_of, vault_in
from custody.server.store.models import ChainCoin, Proposal, ProposalInput, Vault
from multisig import CHANGE, RECEIVE, ChangeTo, FeeRate, Sats


@dataclass(frozen=True)
class Child:
    """A drafted child, not yet stored."""

    parent_id: str
    draft: Draft


class Accelerating:
    def __init__(
        self,
        clock: Clock,
        random: RandomBytes,
        rng: RandomSource,
        audit: AuditLog,
        changes: Changes,
        market: Market,
        limits: Limits,
        in_force: AdvisoriesInForce,
    ) -> None:
        self._in_force = in_force
        self._clock = clock
        self._random = random
        self._rng = rng
        self._audit = audit
        self._changes = changes
        self._market = market
        self._limits = limits

    def draft(self, db: Session, access: WorkspaceAccess, request: CreatePsbtRequest) -> Child:
        """Only reads, for a snapshot.

        Raises NotFound; StateConflict (not on the network, without free change, or at the end of a chain that
        nodes take no more of); Invalid (it pays the rate
        already, or the fee would be above the cap); InsufficientFunds (the change is too small);
        ChainUnavailable.
        """
        assert request.accelerates_psbt_id is not None, "the caller asks for a child"
        vault = vault_to_spend(db, access, request.wallet_id)
        parent = find_proposal(db, access, vault, request.accelerates_psbt_id, "accelerates_psbt_id")
        coin = _free_change(db, vault, parent)
        quote = self._market.quote(vault.chain)
        plan = plan_of(policy_of(vault), Intent(), read_rate(request, quote))
        vsize = plan.vsize(1, True)  # noqa: FBT003 - the shape Plan asks for
        fee = _fee(_unconfirmed(db, vault, parent), vsize, plan.rate)
        selection = Selection((coin,), Sats(coin.amount - fee), fee)
        require_sane_fee(selection)
        if coin.amount - fee < plan.minimum_change:
            raise InsufficientFunds(f"The change of {coin.amount} sat does not cover the fee of {fee} sat.")
        lock = choose_locktime(quote.tip.height, self._clock().timestamp() - quote.tip.time, self._rng)
        branch, index = _change_address(coin, vault)
        back = ChangeTo(selection.change, branch, index)
        parts = Parts(policy_of(vault), tuple(coins_to_spend(db, vault.chain, [coin])), (back,), lock)
        draft = Draft(parts.build(), selection, vsize, parts)
        require_taken_by_nodes(db, vault.chain, draft.utxos, vsize)
        return Child(parent.id, draft.distinct(db, quote.tip.height))

    def create(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: CreatePsbtRequest, child: Child
    ) -> CreatePsbtResponse:
        """Raises Outdated where the change was spent or this transaction was proposed meanwhile;
        RoleLimitExceeded, VaultLimitExceeded, PolicyUnavailable.
        """
        vault = vault_in(db, access, request.wallet_id)
        require_unchanged(db, vault.chain, child.draft.utxos)
        require_makers_stay(db, child.draft.utxos)
        draft = child.draft
        if draft.change_index not in {None, vault.next_change_index}:
            draft = draft.with_change_at(vault.next_change_index)
        movement = self.within_limits(db, caller, access, vault, draft)
        proposal_id = new_id(self._random)
        lock_coins(db, vault.chain, [utxo.outpoint for utxo in draft.utxos], proposal_id)
        said = request.description or f"Pays for proposal {child.parent_id} to be mined sooner."
        terms = Terms(proposal_id, proposal_id, caller.user_id, said, movement.amount, movement.proposed_at)
        proposal = store_proposal(db, vault, draft, terms, self._in_force)
        what = f"{movement.amount} sat of fee, tx {proposal.txid_expected}, accelerates {child.parent_id}"
        record_proposal(db, self._audit, self._changes, caller, access, proposal, what)
        return CreatePsbtResponse(psbt_id=proposal.id, psbt_base64=draft.base64)

    def within_limits(
        self, db: Session, caller: Caller, access: WorkspaceAccess, vault: Vault, draft: Draft
    ) -> Movement:
        """The movement that counts for the limits. Raises RoleLimitExceeded, VaultLimitExceeded,
        PolicyUnavailable.
        """
        movement = Movement(draft.selection.fee, self._clock())
        self._limits.require(db, caller, access, vault, movement)
        return movement


def _free_change(db: Session, vault: Vault, parent: Proposal) -> Utxo:
    """The parent's change, where it is in the mempool and no transaction spends it."""
    if TxType(parent.tx_type) not in KINDS:
        raise StateConflict(
            f"A proposal of the kind {parent.tx_type} leaves the vault no change: it can only wait."
        )
    if Status(parent.status) is not Status.BROADCASTING:
        raise StateConflict(
            f"The proposal is {parent.status}; only one that waits in the mempool can be accelerated."
        )
    if parent.replaced_by_id is not None:
        raise StateConflict(
            f"It was replaced by {parent.replaced_by_id}, so its change may never exist: accelerate or end "
            "that one."
        )
    change = change_of(parent)
    row = None if change is None else db.scalars(_unspent(vault, parent, change.vout)).one_or_none()
    if row is None:
        raise StateConflict("It has no unconfirmed change that is free: replace it instead.")
    return utxo_of(row)


def _unspent(vault: Vault, parent: Proposal, vout: int) -> Select[ChainCoin]:
    return select(ChainCoin).where(
        ChainCoin.chain == vault.chain,
        ChainCoin.txid == parent.txid_expected,
        ChainCoin.vout == vout,
        ChainCoin.vault_id == vault.id,
        ChainCoin.height.is_(None),
        ChainCoin.spent_by.is_(None),
        ~is_locked(),
    )


def _change_address(coin: Utxo, vault: Vault) -> tuple[int, int]:
    """The child's change address: for a token's transaction it stays the vault's own address."""
    if coin.branch == RECEIVE:
        return coin.branch, coin.address_index
    return CHANGE, vault.next_change_index


def _unconfirmed(db: Session, vault: Vault, parent: Proposal) -> list[PricedTransaction]:
    """The parent and its unconfirmed ancestors among our proposals: miners take all or none."""
    found: dict[str, PricedTransaction] = {}
    waiting: list[Proposal] = [parent]
    while waiting and len(found) < MAX_TOGETHER:
        proposal = waiting.pop()
        if proposal.id not in found:
            found[proposal.id] = priced(proposal, vault)
            waiting += _makers(db, proposal)
    return list(found.values())


def _makers(db: Session, proposal: Proposal) -> Sequence[Proposal]:
    query = (
        select(Proposal)
        .join(ProposalInput, ProposalInput.txid == Proposal.txid_expected)
        .where(
            ProposalInput.proposal_id == proposal.id,
            Proposal.vault_id == proposal.vault_id,
            Proposal.status == Status.BROADCASTING.value,
        )
    )
    return db.scalars(query).all()


def _fee(parents: Sequence[PricedTransaction], vsize: int, rate: FeeRate) -> Sats:
    fee = fee_for_parents(parents, vsize, rate)
    if fee is None:
        raise Invalid.at("/fee_rate", f"It pays {rate} already: ask for a higher rate.")
    return fee
