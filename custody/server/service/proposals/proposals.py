"""Proposing a send, and reading proposals."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from sqlalchemy import ColumnElement, Exists, Select, and_, exists, func, or_, select, text, tuple_
from sqlalchemy.orm import Session

from custody.schemas import proposals as wire
from custody.schemas.common import Listed
from custody.schemas.proposals import ProposalStatus
from custody.server.domain.credentials import Caller, WorkspaceAccess, new_id
from custody.server.domain.errors import (
    CustodyError,
    InsufficientFunds,
    Invalid,
    LockedFunds,
    NotFound,
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
from custody.server.service.proposals.maximum import MaximumSend, own_scripts
from custody.server.service.proposals.payments import Intent, named_coins, read_intent, read_rate
from custody.server.service.proposals.records import Reader, proposal_records
from custody.server.service.proposals.searching import search
from custody.server.service.proposals.signing import APPROVER
from custody.server.service.proposals.storing import Terms, record_proposal, store_proposal
from custody.server.service.requests.changes import Changes, Outdated
from custody.server.service.shown import shown
from custody.server.service.stored_vaults import derive_ahead, policy_of, vault_in
from custody.server.store.models import PROOFS, Decision, Proposal, Vault, VaultSigner
from custody.server.store.store import within_days
from multisig import FeeRate, Network, Sats

# Counting stops here, so that the cost of a page does not grow with the number of proposals.
MAX_COUNTED = 1_000


@dataclass(frozen=True)
class Page:
    """A page of a workspace's proposals. `total` counts all that match the filter; there are more unless
    `is_exact`. `following`: the id after which the next page begins.
    """

    items: Listed[wire.Proposal]
    total: int
    is_exact: bool
    following: str | None


@dataclass(frozen=True)
class Filter:
    """Which proposals to list. `awaiting`: the user whose decision they need; `after`: the last id of the
    page before; `search`: words that each must have; `proofs`: only proofs of control; `from_day`, `to_day`:
    when they were proposed.
    """

    status: ProposalStatus | None
    awaiting: int | None
    after: str | None
    limit: int
    vault_id: str | None = None
    newest_first: bool = False
    search: str | None = None
    proofs: bool = False
    from_day: date | None = None
    to_day: date | None = None


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
        maximum: MaximumSend,
    ) -> None:
        self._maximum = maximum
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
                most = self._maximum.of_intent(db, caller, access, vault, intent, rate, quote)
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

    def find(self, db: Session, proposal_id: str) -> Proposal:
        """A stored proposal of any workspace: the caller checks the workspace. Raises NotFound."""
        proposal = db.get(Proposal, proposal_id)
        if proposal is None:
            raise no_such_proposal()
        return proposal

    def record(
        self, db: Session, caller: Caller, access: WorkspaceAccess, proposal: Proposal
    ) -> wire.Proposal:
        """A proposal of the caller's workspace, as the caller may see it."""
        return proposal_records(db, [proposal], _reader(caller, access))[0]

    def page(self, db: Session, caller: Caller, access: WorkspaceAccess, wanted: Filter) -> Page:
        """Raises Invalid where `after` is not a proposal of the workspace, or the search has too many
        words.
        """
        matching = query = _matching(access, wanted)
        place = tuple_(Proposal.created_at, Proposal.id)
        if wanted.after is not None:
            seen = _position(db, access, wanted.after)
            query = query.where(place < seen if wanted.newest_first else place > seen)
        order = (Proposal.created_at, Proposal.id)
        query = query.order_by(*(each.desc() if wanted.newest_first else each for each in order))
        if wanted.search is not None:
            return _searched(db, caller, access, wanted, query)
        counted = matching.with_only_columns(Proposal.id).limit(MAX_COUNTED + 1).subquery()
        total = db.scalar(select(func.count()).select_from(counted)) or 0
        found: Sequence[Proposal] = db.scalars(query.limit(wanted.limit + 1)).all()
        items = _shown(db, found[: wanted.limit], _reader(caller, access))
        following = found[wanted.limit - 1].id if len(found) > wanted.limit else None
        return Page(items, min(total, MAX_COUNTED), total <= MAX_COUNTED, following)


def _searched(
    db: Session, caller: Caller, access: WorkspaceAccess, wanted: Filter, query: Select[Proposal]
) -> Page:
    assert wanted.search is not None, "a list without a search is counted"
    ids, following = search(
        db, access, query, wanted.search, wanted.limit + 1, newest_first=wanted.newest_first
    )
    if len(ids) > wanted.limit:
        following = ids[wanted.limit - 1]
    listed = ids[: wanted.limit]
    # By id only: with the list's order SQLite would scan all of it.
    found = {each.id: each for each in db.scalars(select(Proposal).where(Proposal.id.in_(listed)))}
    items = _shown(db, [found[each] for each in listed], _reader(caller, access))
    return Page(items, len(items), wanted.after is None and following is None, following)


def _shown(db: Session, proposals: Sequence[Proposal], reader: Reader) -> Listed[wire.Proposal]:
    return shown(
        proposals, lambda some: proposal_records(db, some, reader), "psbt_id", lambda proposal: proposal.id
    )


def _reader(caller: Caller, access: WorkspaceAccess) -> Reader:
    """A program is not a signer, even where its maker is one."""
    return Reader(caller.user_id if caller.service is None else 0, access.holds_any(APPROVER))


def no_such_proposal() -> NotFound:
    return NotFound("There is no such proposal.")


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


def _matching(access: WorkspaceAccess, wanted: Filter) -> Select[Proposal]:
    query = select(Proposal).where(Proposal.workspace_id == access.workspace_id)
    if wanted.status is not None:
        query = query.where(Proposal.status == wanted.status.value)
    if wanted.vault_id is not None:
        query = query.where(Proposal.vault_id == wanted.vault_id)
    if wanted.proofs:
        query = query.where(text(PROOFS))
    query = query.where(*within_days(Proposal.created_at, wanted.from_day, wanted.to_day))
    if wanted.awaiting is not None:
        query = query.where(
            Proposal.status == ProposalStatus.PENDING.value,
            Proposal.replaced_by_id.is_(None),
            _may_decide(wanted.awaiting),
            ~has_decided(wanted.awaiting),
        )
    return query


def _may_decide(user_id: int) -> ColumnElement[bool]:
    """The user is a signer of the vault, or the owner of a forward's money."""
    is_signer = exists().where(VaultSigner.vault_id == Proposal.vault_id, VaultSigner.user_id == user_id)
    return or_(
        and_(Proposal.profile_key_id.is_(None), is_signer),
        and_(Proposal.profile_key_id.is_not(None), Proposal.created_by == user_id),
    )


def has_decided(user_id: int) -> Exists:
    """The user has declined, or has signed every input."""
    return exists().where(
        Decision.proposal_id == Proposal.id,
        Decision.user_id == user_id,
        (Decision.decision == "reject") | Decision.is_complete,
    )


def _position(db: Session, access: WorkspaceAccess, proposal_id: str) -> tuple[object, str]:
    proposal = db.get(Proposal, proposal_id)
    if proposal is None or proposal.workspace_id != access.workspace_id:
        raise Invalid.at("/after", "There is no such proposal in this workspace.")
    return proposal.created_at, proposal.id
