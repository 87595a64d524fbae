"""From what somebody wants to propose to its unsigned transaction. Everything here only reads.

Each kind of proposal is one function that reads an `Order`; the rest of the way is the same for all
(`custody.server.proposals.propose`).
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from custody.schemas.proposals import TxType
from custody.server.calls import Ctx
from custody.server.errors import Invalid, RoleLimitExceeded, VaultLimitExceeded
from custody.server.limits.calls import require_in_limits
from custody.server.limits.stored import OutgoingAmount
from custody.server.network.backends import Quote
from custody.server.proposals.bounds import is_move
from custody.server.proposals.choosing import require_taken_by_nodes
from custody.server.proposals.coins import Utxo, coins_to_spend
from custody.server.proposals.payments import Intent
from custody.server.requests.changes import OutdatedDraft
from custody.server.rules.fees import MAX_FEE
from custody.server.rules.selection import (
    BACKDATE_BLOCKS,
    SEQUENCE,
    Selection,
    choose_locktime,
    other_locktimes,
)
from custody.server.store.models import ProposalRow, WatchedScriptRow
from custody.server.vaults.stored import vault_in
from multisig import (
    CHANGE,
    Built,
    ChangeTo,
    CoinToSpend,
    FeeRate,
    Policy,
    PsbtTooLarge,
    Sats,
    Transaction,
    TxOut,
    built_psbt,
)

NOTHING: Final = Sats(0)


@dataclass(frozen=True)
class Funding:
    """The coins of a draft in the order of its inputs, their change and fee.

    ``intent``: the order's, a sweep with its amount. ``rate``: the one that was asked for. ``paid``: what
    leaves the vault, without the fee. ``fresh``: the coins that its family does not hold yet; they must be
    unchanged when it locks them. ``kept``: a coin that has to stay unspent. ``least``: the movement at the
    lowest fee that there is, where other coins may pay the same for less. ``built``: the PSBT of a proof,
    which spends nothing.
    """

    intent: Intent
    selection: Selection[Utxo]
    vsize: int
    rate: FeeRate
    paid: Sats = NOTHING
    fresh: tuple[Utxo, ...] = ()
    kept: Utxo | None = None
    least: Sats | None = None
    built: Built | None = None


# The first that builds a PSBT which devices take is used.
Fund = Callable[[Quote], Iterable[Funding]]


@dataclass(frozen=True)
class Order:
    """What somebody wants to propose, before a coin is chosen. It is read in a snapshot, and again under the
    write lock: where the two differ, the draft is outdated.

    ``policy``: whose keys sign. ``rests_on``: what else must be the same. ``recipients``: those on record
    where they are not the intent's. ``change_at``: branch and index of the change, else the vault's next.
    ``profile_key_id``: the member's own key whose coins are spent, in the place of the vault's. ``fee_at``,
    ``size_at``: the request's fields at fault where the fee or the PSBT is too large. ``cheapest``: the coins
    with the lowest fee, where a limit refuses the first ones.
    """

    kind: TxType
    vault_id: str
    chain: str
    policy: Policy = field(compare=False)
    intent: Intent
    fund: Fund = field(compare=False)
    cheapest: Fund | None = field(default=None, compare=False)
    rests_on: Hashable = None
    description: str | None = None
    recipients: tuple[str, ...] | None = None
    contract_ids: tuple[str, ...] = ()
    change_at: tuple[int, int] | None = None
    profile_key_id: str | None = None
    family_id: str | None = None
    replaces_id: str | None = None
    counts_for_role: bool = True
    tokens: OutgoingAmount | None = field(default=None, compare=False)
    fee_at: str = field(default="/fee_rate", compare=False)
    size_at: str = field(default="/fee_rate", compare=False)


@dataclass(frozen=True)
class Draft:
    """A transaction that is ready to be proposed. ``coins``, ``outputs``, ``locktime``: what ``built`` is
    made from; a proof's is not made here. ``txid`` is computed here, before the write lock is taken.
    """

    order: Order
    funding: Funding
    built: Built
    coins: tuple[CoinToSpend, ...] = ()
    outputs: tuple[TxOut | ChangeTo, ...] = ()
    locktime: int = 0
    txid: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "txid", self.built.psbt.tx.txid)

    @property
    def selection(self) -> Selection[Utxo]:
        return self.funding.selection

    @property
    def scripts(self) -> set[bytes]:
        """Its output scripts."""
        return {output.script_pubkey for output in self.built.psbt.outputs}

    @property
    def change_index(self) -> int | None:
        """Of the vault's next change address, where the change goes there: a sweep has none."""
        if self.order.change_at or self.funding.intent.sweeps:
            return None
        return next((item.index for item in self.outputs if isinstance(item, ChangeTo)), None)

    def with_change_at(self, index: int) -> "Draft":
        """The same with another change index, after another proposal has taken the first one."""
        if self.change_index in {None, index}:
            return self
        outputs = (
            replace(each, index=index) if isinstance(each, ChangeTo) else each for each in self.outputs
        )
        return self._rebuilt(tuple(outputs), self.locktime)

    def distinct(self, db: Session, tip_height: int) -> "Draft":
        """The same as a transaction that no proposal has yet; a proof stays as it is."""
        if self.funding.built is not None:
            return self
        locktime = free_locktime(db, self.built.psbt.tx, tip_height)
        return self if locktime == self.locktime else self._rebuilt(self.outputs, locktime)

    def _rebuilt(self, outputs: tuple[TxOut | ChangeTo, ...], locktime: int) -> "Draft":
        built = built_psbt(self.order.policy, self.coins, outputs, locktime, SEQUENCE)
        return replace(self, built=built, outputs=outputs, locktime=locktime)


def draft_of(ctx: Ctx, order: Order, *, thorough: bool) -> Draft:
    """Chooses the coins and builds the PSBT. ``thorough``: also checks that the draft fits the limits and
    that no proposal has this transaction. Both fail rarely, and are checked when it is stored.

    Raises Invalid (the fee is above the cap, the PSBT larger than devices take), StateConflict (nodes would
    not take it), LockedFunds, InsufficientFunds, ChainUnavailable; thorough, RoleLimitExceeded,
    VaultLimitExceeded, PolicyUnavailable.
    """
    quote = ctx.tools.market.quote(order.chain)
    draft = _first_that_fits(ctx, order, quote, order.fund(quote))
    if not thorough:
        return draft
    if order.cheapest is not None:
        try:
            within_limits(ctx, draft)
        except OutdatedDraft:
            others = [*order.cheapest(quote)] or [replace(draft.funding, least=None)]
            draft = _first_that_fits(ctx, order, quote, others)
    return draft.distinct(ctx.db, quote.tip.height)


def _first_that_fits(ctx: Ctx, order: Order, quote: Quote, fundings: Iterable[Funding]) -> Draft:
    refused: Invalid | None = None
    for funding in fundings:
        try:
            return _built(ctx, order, quote, funding)
        except PsbtTooLarge as error:
            # Payers decide how large the previous transactions are, which devices have to read.
            coins = f"{len(funding.selection.coins)} coins and their previous transactions"
            sentence = f"{coins} are more than a device takes: {error}"
            refused = Invalid.at(order.size_at, sentence, error.code)
    assert refused is not None, "an order is funded, or refused"
    raise refused


def _built(ctx: Ctx, order: Order, quote: Quote, funding: Funding) -> Draft:
    """Raises PsbtTooLarge."""
    if funding.built is not None:
        return Draft(order, funding, funding.built)
    selection = funding.selection
    if selection.fee > MAX_FEE:
        sentence = f"The fee of {selection.fee:,} sats is above the cap of {MAX_FEE:,} sats."
        raise Invalid.at(order.fee_at, sentence, "fee-too-high")
    if order.family_id is None:
        require_taken_by_nodes(ctx.db, order.chain, selection.coins, funding.vsize)
    coins = tuple(coins_to_spend(ctx.db, order.chain, selection.coins))
    outputs: list[TxOut | ChangeTo] = list(funding.intent.outputs)
    if funding.intent.sweeps and order.profile_key_id is None:
        # What moves all of it within the vault says so to signers and devices: as change, with its origins.
        outputs[0] = _to_itself(ctx, order, funding.intent.payments[0].output)
    if selection.change:
        vault = vault_in(ctx.db, ctx.access, order.vault_id)
        branch, index = order.change_at or (CHANGE, vault.next_change_index)
        # At a random position, so that the position does not reveal it.
        change = ChangeTo(selection.change, branch, index)
        outputs.insert(ctx.tools.rng.randrange(len(outputs) + 1), change)
    locktime = choose_locktime(quote.tip.height, ctx.now.timestamp() - quote.tip.time, ctx.tools.rng)
    built = built_psbt(order.policy, coins, tuple(outputs), locktime, SEQUENCE)
    return Draft(order, funding, built, coins, tuple(outputs), locktime)


def _to_itself(ctx: Ctx, order: Order, output: TxOut) -> TxOut | ChangeTo:
    """With its place where it is an address of the vault."""
    ours = WatchedScriptRow.chain == order.chain, WatchedScriptRow.script_pubkey == output.script_pubkey
    place = select(WatchedScriptRow.branch, WatchedScriptRow.address_index).where(*ours)
    found = ctx.db.execute(place.where(WatchedScriptRow.vault_id == order.vault_id)).one_or_none()
    return output if found is None else ChangeTo(output.amount, *found)


def within_limits(ctx: Ctx, draft: Draft) -> OutgoingAmount:
    """Checks the limits, and returns what counts for them: what leaves the vault, with the fee.

    Raises RoleLimitExceeded, VaultLimitExceeded, PolicyUnavailable; Outdated where another draft may fit.
    """
    order, funding = draft.order, draft.funding
    nothing = OutgoingAmount(Sats(0), ctx.now, order.family_id, order.counts_for_role)
    # Limits are for what leaves a vault: a forward enters one, and a proof moves nothing.
    if order.profile_key_id is not None or order.kind is TxType.PROOF:
        return nothing
    vault = vault_in(ctx.db, ctx.access, order.vault_id)
    if is_move(ctx.db, vault, draft.scripts):
        return nothing
    movement = replace(nothing, amount=Sats(funding.paid + funding.selection.fee))
    try:
        require_in_limits(ctx, vault, movement)
    except (RoleLimitExceeded, VaultLimitExceeded):
        if funding.least is None:
            raise
        require_in_limits(ctx, vault, replace(movement, amount=funding.least))
        raise OutdatedDraft("Other coins may pay the same for less.") from None
    if order.tokens is not None:
        require_in_limits(ctx, vault, order.tokens)
    return movement


def free_locktime(db: Session, tx: Transaction, tip_height: int) -> int:
    """A lock time with which no proposal has this transaction yet, ended ones included; its own if possible.

    Two proposals must not be the same transaction: a member who proposes the same payment again after the
    first has ended could get the same coins, outputs and txid. Only the lock time can always be varied: the
    maker fixes a forward's amounts and fee, and there may be no change.
    """
    others = other_locktimes(tip_height)
    candidates = [tx.locktime]
    while True:
        txids = [replace(tx, locktime=each).txid for each in candidates]
        taken = set(db.scalars(_TAKEN, {"txids": txids}))
        for locktime, txid in zip(candidates, txids, strict=True):
            if txid not in taken:
                return locktime
        candidates = list(islice(others, BACKDATE_BLOCKS))


_TAKEN = select(ProposalRow.txid_expected).where(
    ProposalRow.txid_expected.in_(bindparam("txids", expanding=True))
)
