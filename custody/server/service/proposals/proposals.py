"""Proposing a send."""

from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from custody.schemas import proposals as wire
from custody.server.domain.credentials import Caller, WorkspaceAccess, new_id
from custody.server.domain.errors import (
    CustodyError,
    InsufficientFunds,
    LockedFunds,
    RoleLimitExceeded,
    VaultLimitExceeded,
)
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.service.audit.log import AuditLog
from custody.server.service.backends import Market, Quote
from custody.server.service.limits.limits import Limits, Movement
from custody.server.service.proposals.bounds import is_move, require_move, vault_to_spend
from custody.server.service.proposals.coins import lock_coins, require_makers_stay, require_unchanged
from custody.server.service.proposals.drafting import Draft, Drafter, plan_of
from custody.server.service.proposals.maximum import most_of_intent, own_scripts
from custody.server.service.proposals.payments import Intent, named_coins, read_intent, read_rate
from custody.server.service.proposals.storing import Terms, record_proposal, store_proposal
from custody.server.service.requests.changes import Changes, Outdated
from custody.server.service.stored_vaults import derive_ahead, policy_of, vault_in
from custody.server.store.models import Proposal, Vault
from multisig import FeeRate, Network, Sats


@dataclass(frozen=True)
class Prepared:
    """A drafted send, not yet stored. ``paid``: the amount that leaves the vault, without the fee and without
    payments to itself. ``is_cheapest``: no other coins pay it for a lower fee.
    """

    intent: Intent
    draft: Draft
    paid: Sats
    is_cheapest: bool = False


class Proposals:
    def __init__(
        self,
        clock: Clock,
        random: RandomBytes,
        audit: AuditLog,
        changes: Changes,
        market: Market,
        drafter: Drafter,
        limits: Limits,
    ) -> None:
        self._clock = clock
        self._random = random
        self._audit = audit
        self._changes = changes
        self._market = market
        self._drafter = drafter
        self._limits = limits

    def draft(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        request: wire.CreatePsbtRequest,
        *,
        tries: int = 0,
    ) -> Prepared:
        """Chooses the coins and builds the PSBT. It only reads, for a snapshot, so that no writer waits.

        ``tries``: how often storing a draft raised Outdated. Only from the second try on does it check that
        no proposal has this transaction, and that it fits the limits: both fail rarely, and are checked again
        when the draft is stored. Payments that exceed a limit without any fee are refused for that, whatever
        coins there are.

        Raises NotFound (vault), Invalid, WrongNetworkAddress, Dust, RoleLimitExceeded, VaultLimitExceeded,
        InsufficientFunds, LockedFunds, PolicyUnavailable, ChainUnavailable, StateConflict (the vault is
        replaced).
        """
        vault = vault_to_spend(db, access, request.wallet_id)
        intent = read_intent(request, Network(vault.chain))
        quote = self._market.quote(vault.chain)
        rate = read_rate(request, quote)
        require_move(db, vault, {output.script_pubkey for output in intent.outputs})
        derive_ahead(vault)
        if request.coins is not None:
            named = named_coins(db, vault, request.coins, quote.tip.height, intent.outputs)
            intent, draft = self._drafter.spending(db, vault, intent, rate, quote, named)
            return Prepared(intent, draft, _paid_elsewhere(db, vault, intent))
        if intent.sweeps:
            intent, draft = self._drafter.sweep(db, vault, intent, rate, quote, distinct=tries > 0)
            return Prepared(intent, draft, _paid_elsewhere(db, vault, intent))
        try:
            draft = self._drafter.draft(db, vault, intent, rate, quote, distinct=tries > 0)
        except CustodyError as error:
            paid = _paid_elsewhere(db, vault, intent)
            # Limits are normally checked when the draft is stored, so that the sums are not read twice.
            self._require_least(db, caller, access, vault, intent, paid, rate)
            if isinstance(error, InsufficientFunds | LockedFunds) and intent.payments:
                most = most_of_intent(db, self._limits, caller, access, vault, intent, rate, quote)
                raise type(error)(
                    f"{error.detail} {most.in_words}", figures={"maximum_sats": int(most.amount)}
                ) from error
            raise
        prepared = Prepared(intent, draft, _paid_elsewhere(db, vault, intent))
        return prepared if tries == 0 else self._at_less_fee(db, caller, access, vault, prepared, rate, quote)

    def create(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        request: wire.CreatePsbtRequest,
        prepared: Prepared,
    ) -> wire.CreatePsbtResponse:
        """Stores the proposal and locks its coins.

        Raises Outdated where a coin of the draft was spent, this transaction was proposed meanwhile, or
        another draft may fit the limits; NotFound (vault), RoleLimitExceeded, VaultLimitExceeded,
        PolicyUnavailable.
        """
        vault = vault_in(db, access, request.wallet_id)
        require_unchanged(db, vault.chain, prepared.draft.needed)
        require_makers_stay(db, prepared.draft.utxos)
        draft, movement = self.within_limits(db, caller, access, vault, request, prepared)
        proposal = self._insert(db, caller, vault, request, prepared.intent, draft, movement)
        what = f"{movement.amount} sat with the fee, tx {proposal.txid_expected}"
        record_proposal(db, self._audit, self._changes, caller, access, proposal, what)
        return wire.CreatePsbtResponse(psbt_id=proposal.id, psbt_base64=draft.base64)

    def within_limits(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        vault: Vault,
        request: wire.CreatePsbtRequest,
        prepared: Prepared,
    ) -> tuple[Draft, Movement]:
        """The draft to store, and the movement that counts for the limits. Raises RoleLimitExceeded,
        VaultLimitExceeded, PolicyUnavailable; Outdated where another draft might fit.
        """
        draft = _at_next_change(vault, prepared.draft)
        if is_move(db, vault, draft.scripts):
            return draft, Movement(Sats(0), self._clock())
        movement = Movement(Sats(prepared.paid + draft.selection.fee), self._clock())
        try:
            self._limits.require(db, caller, access, vault, movement)
        except (RoleLimitExceeded, VaultLimitExceeded):
            if request.coins is not None or prepared.intent.sweeps or prepared.is_cheapest:
                raise
            rate = read_rate(request, self._market.quote(vault.chain))
            self._require_least(db, caller, access, vault, prepared.intent, prepared.paid, rate)
            raise Outdated("Other coins may pay the same for less.") from None
        return draft, movement

    def _at_less_fee(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        vault: Vault,
        prepared: Prepared,
        rate: FeeRate,
        quote: Quote,
    ) -> Prepared:
        """Where the fee of the randomly drawn coins exceeds a limit, the coins with the lowest fee. Raises
        RoleLimitExceeded, VaultLimitExceeded where no coins fit.
        """
        movement = Movement(Sats(prepared.paid + prepared.draft.selection.fee), self._clock())
        try:
            self._limits.require(db, caller, access, vault, movement)
        except (RoleLimitExceeded, VaultLimitExceeded):
            # Refuses first what no coins can make fit, because the search below is slow.
            self._require_least(db, caller, access, vault, prepared.intent, prepared.paid, rate)
            cheapest = self._drafter.cheapest(db, vault, prepared.intent, rate, quote)
            return replace(prepared, draft=cheapest or prepared.draft, is_cheapest=True)
        return prepared

    def _require_least(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        vault: Vault,
        intent: Intent,
        paid: Sats,
        rate: FeeRate,
    ) -> None:
        """Checks the limits with the lowest possible fee, that of one coin. Raises RoleLimitExceeded,
        VaultLimitExceeded.
        """
        least_fee = plan_of(policy_of(vault), intent, rate).fee(1, with_change=False)
        self._limits.require(db, caller, access, vault, Movement(Sats(paid + least_fee), self._clock()))

    def _insert(
        self,
        db: Session,
        caller: Caller,
        vault: Vault,
        request: wire.CreatePsbtRequest,
        intent: Intent,
        draft: Draft,
        movement: Movement,
    ) -> Proposal:
        proposal_id = new_id(self._random)
        lock_coins(db, vault.chain, [utxo.outpoint for utxo in draft.utxos], proposal_id)
        terms = Terms(
            proposal_id,
            proposal_id,
            caller.user_id,
            request.description,
            movement.amount,
            movement.proposed_at,
            recipients=tuple(payment.address for payment in intent.payments),
            amounts=tuple(int(payment.output.amount) for payment in intent.payments),
            op_return_hex=None if intent.op_return is None else intent.op_return.hex(),
            contract_ids=tuple(request.contract_ids or ()),
            sweeps=intent.sweeps,
        )
        return store_proposal(db, vault, draft, terms)


def _at_next_change(vault: Vault, draft: Draft) -> Draft:
    """Each proposal gets its own change address, unless many were never sent (`use_change_index`)."""
    if draft.change_index in {None, vault.next_change_index}:
        return draft
    return draft.with_change_at(vault.next_change_index)


def _paid_elsewhere(db: Session, vault: Vault, intent: Intent) -> Sats:
    """The amount without payments to the vault itself."""
    own = own_scripts(db, vault, intent)
    return Sats(
        sum(payment.output.amount for payment in intent.payments if payment.output.script_pubkey not in own)
    )
