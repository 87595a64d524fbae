"""The one way to propose: from an order to the stored proposal, whatever is proposed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import String, cast, false, insert, literal_column, or_, select
from sqlalchemy.orm import Session, defer

from custody.schemas.proposals import ProposalStatus, PsbtPreview, TxType
from custody.server.calls import Ctx, In, Steps
from custody.server.limits.calls import room
from custody.server.limits.stored import OutgoingAmount
from custody.server.proposals.bounds import require_listed, require_move, require_signers
from custody.server.proposals.coins import (
    lock_coins,
    require_makers_stay,
    require_unchanged,
)
from custody.server.proposals.drafts import Draft, Order, draft_of, within_limits
from custody.server.proposals.lifecycle import HELD, settle_family
from custody.server.proposals.records import rate_text
from custody.server.proposals.screening import hold, is_screened, tell_signers
from custody.server.requests.changes import OutdatedDraft
from custody.server.rules.audit import Event
from custody.server.rules.credentials import WorkspaceAccess, new_id
from custody.server.rules.selection import PROPOSAL_LIFETIME
from custody.server.store.models import (
    AddressBookEntryRow,
    ChainCoinRow,
    PayeeRow,
    ProposalInputRow,
    ProposalRow,
    ServiceAccountRow,
    VaultRow,
    WatchedScriptRow,
)
from custody.server.store.store import duplicates_refused
from custody.server.vaults.stored import GAP, index_after, vault_in
from custody.server.webhooks.events import LATER, event_data
from multisig import (
    CHANGE,
    RECEIVE,
    ChangeTo,
    FeeRate,
    Network,
    decode_address,
    encode_address,
    ends_of,
    resembled,
)

_PROPOSED_ALREADY = (
    "This was proposed already, as the same transaction: sign that proposal, or propose it again after the "
    "next block."
)
# Proposals that are compared with a new one, and the states of those that pay.
NEWEST: Final = 100
_PAYING: Final = ("PENDING", "SIGNED", "STALLED", "BROADCASTING", "CONFIRMED")
# How the audit log's words begin for each kind.
CREATED: Final = "proposal {proposal} of vault {vault}, "


@dataclass(frozen=True)
class Proposed:
    """A proposal that is stored, in the transaction that stored it."""

    ctx: Ctx
    draft: Draft
    row: ProposalRow

    @property
    def base64(self) -> str:
        return self.draft.built.base64

    def announce(self, event: Event, **facts: int | str | None) -> None:
        """Wakes long polls, records the event and notifies webhooks: of what screening holds, later."""
        row, ctx = self.row, self.ctx
        ctx.tools.changes.moved(ctx.db, row.workspace_id)
        common = {"proposal": row.id, "vault": row.vault_id, "txid": row.txid_expected}
        ctx.event(event, LATER if row.screening == HELD else event_data(row), **common, **facts)


def propose(ctx: Ctx, read: Callable[[Ctx], Order]) -> Steps[Proposed]:
    """Drafts in a snapshot, so that no writer waits, and stores under the write lock. ``read`` chooses
    nothing, and reads the same until what the draft rests on has changed.

    Raises what `draft_of` and `permitted` do; Outdated where the order, a coin or a limit changed since, or
    another proposal has this transaction.
    """
    draft = draft_of(ctx, read(ctx), thorough=ctx.tries > 0)
    ctx = yield In.WRITE
    order = read(ctx)
    if order != draft.order:
        raise OutdatedDraft("What it rests on has changed: a version, a coin, a key or an address.")
    draft, funding, proposal_id = replace(draft, order=order), draft.funding, new_id(ctx.tools.random)
    if funding.fresh:
        lock_coins(ctx.db, order.chain, funding.fresh, order.family_id or proposal_id, ctx.now)
        if funding.kept is not None:
            require_unchanged(ctx.db, order.chain, [funding.kept], ctx.now)
        if order.profile_key_id is None:
            require_makers_stay(ctx.db, funding.fresh)
    draft = draft.with_change_at(vault_in(ctx.db, ctx.access, order.vault_id).next_change_index)
    return Proposed(ctx, draft, _stored(ctx, proposal_id, draft, permitted(ctx, draft)))


def preview(ctx: Ctx, order: Order) -> PsbtPreview:
    """What `propose` would store now. Raises what it would."""
    draft = draft_of(ctx, order, thorough=True)
    funding, selection = draft.funding, draft.selection
    moved, left, same_as = permitted(ctx, draft).amount, None, None
    alike: Mapping[str, str] = {}
    recipients = [payment.address for payment in funding.intent.payments]
    amounts = [int(payment.output.amount) for payment in funding.intent.payments]
    # A version counts together with what it replaces, and a forward for no limit.
    if order.family_id is None and order.profile_key_id is None:
        vault = vault_in(ctx.db, ctx.access, order.vault_id)
        left = room(ctx, vault, after=moved)
        if order.kind is TxType.SEND:
            paid = zip(recipients, amounts, strict=True)
            same_as = newest_same(ctx, ctx.access.workspace_id, paid, funding.intent.op_return)
            alike = resembling(ctx.db, ctx.access, recipients)
    return PsbtPreview(
        psbt_base64=draft.built.base64,
        recipients=recipients,
        amounts_sats=amounts,
        coins=[str(utxo.outpoint) for utxo in selection.coins],
        change_sats=selection.change,
        fee_sats=selection.fee,
        fee_rate=rate_text(FeeRate.of(selection.fee, funding.vsize)),
        asked_fee_rate=rate_text(funding.rate),
        vsize=funding.vsize,
        movement_sats=moved,
        role_left_sats=None if left is None else left.role,
        vault_left_sats=None if left is None else left.vault,
        same_as=same_as,
        resembles=[alike.get(recipient) for recipient in recipients],
    )


def resembling(db: Session, access: WorkspaceAccess, addresses: Sequence[str]) -> Mapping[str, str]:
    """Of the addresses, each that only resembles known ones, with those; and each that is not known and only
    resembles an earlier one, with that. A name in the address book makes none the address that was paid, or
    the vault's own.
    """
    network, ends = Network(access.chain), {ends_of(address) for address in addresses}
    paid, named = (
        set(
            db.scalars(select(one.address).where(one.workspace_id == access.workspace_id, one.ends.in_(ends)))
        )
        for one in (PayeeRow, AddressBookEntryRow)
    )
    # The first characters of an address are its program's first bits, and a vault's program has 32 bytes.
    begins = (b"\0\x20" + decode_address(address, network)[2:4] for address in addresses)
    alike = (WatchedScriptRow.script_pubkey.between(each, each + b"\xff" * 30) for each in begins)
    vaults = select(VaultRow.id).where(VaultRow.workspace_id == access.workspace_id)
    own = select(WatchedScriptRow.script_pubkey).where(
        WatchedScriptRow.chain == access.chain, or_(false(), *alike), WatchedScriptRow.vault_id.in_(vaults)
    )
    ours = {encode_address(script, network) or "" for script in db.scalars(own)}
    first = {ends_of(each): each for each in reversed(addresses)}
    new = (each for each in addresses if each not in paid | ours | named and each != first[ends_of(each)])
    return {each: first[ends_of(each)] for each in new} | resembled(addresses, paid | ours, named)


def newest_same(
    ctx: Ctx, workspace_id: int, paid: Iterable[tuple[str, int]], data: bytes | None
) -> str | None:
    """Of the newest payments that wait, are on their way or confirmed, from any vault, one that pays the
    same: it would be paid twice. ``paid``: addresses and satoshis.
    """
    same = sorted(paid), None if data is None else data.hex()
    newest = (
        select(ProposalRow)
        .options(defer(ProposalRow.psbt))
        .where(
            ProposalRow.workspace_id == workspace_id,
            ProposalRow.tx_type == TxType.SEND.value,
            *(cast(ProposalRow.recipients, String).contains(f'"{address}"') for address, _ in same[0][:1]),
            or_(ProposalRow.status.in_(_PAYING), ProposalRow.keeps_coins),
            ProposalRow.created_at > ctx.now - PROPOSAL_LIFETIME,
        )
    )
    for row in ctx.db.scalars(newest.order_by(ProposalRow.created_at.desc()).limit(NEWEST)):
        if (sorted(zip(row.recipients, row.amounts_sats, strict=False)), row.op_return_hex) == same:
            return row.id
    return None


def permitted(ctx: Ctx, draft: Draft) -> OutgoingAmount:
    """What limits count of it. The same checks for a preview and for a proposal that is stored; whether the
    vault is frozen, reading the order tells.

    Raises what `within_limits` does; StateConflict where the vault is replaced, except for moves, calls and
    new versions; NotInAddressBook, TooFewSigners.
    """
    movement, order = within_limits(ctx, draft), draft.order
    if order.profile_key_id is not None:
        return movement
    vault = vault_in(ctx.db, ctx.access, order.vault_id)
    if order.kind is not TxType.PROOF:
        if order.replaces_id is None and order.kind is not TxType.CALL:
            require_move(ctx.db, vault, draft.scripts)
        require_listed(ctx.db, vault, draft.built.raw)
    require_signers(ctx.db, vault, draft.scripts, ctx.caller.user_id, order.family_id)
    return movement


def _stored(ctx: Ctx, proposal_id: str, draft: Draft, movement: OutgoingAmount) -> ProposalRow:
    """The proposal as PENDING, its signers told. Raises Outdated where another proposal has this
    transaction.
    """
    db, order = ctx.db, draft.order
    vault = vault_in(db, ctx.access, order.vault_id)
    row = _row(ctx, proposal_id, vault, draft, movement)
    db.add(row)
    with duplicates_refused(OutdatedDraft(_PROPOSED_ALREADY)):
        db.flush()
    inputs = [
        {
            "proposal_id": row.id,
            "input_index": index,
            "txid": utxo.txid,
            "vout": utxo.vout,
            "amount_sats": utxo.amount,
            "branch": utxo.branch,
            "address_index": utxo.address_index,
        }
        for index, utxo in enumerate(draft.selection.coins)
    ]
    db.execute(insert(ProposalInputRow), inputs)
    if draft.change_index is not None:
        use_index(db, vault, CHANGE, draft.change_index)
    elif draft.funding.intent.sweeps:
        # Else the address to which all of it comes back would be given to payers meanwhile.
        for own in draft.outputs:
            if isinstance(own, ChangeTo) and own.chain == RECEIVE:
                use_index(db, vault, RECEIVE, own.index)
    if order.replaces_id is not None:
        settle_family(db, row)
    if is_screened(vault, row):
        hold(db, ctx.tools.events, vault, row)
    elif order.profile_key_id is None:
        tell_signers(db, vault, movement.proposed_at)
    return row


def _row(ctx: Ctx, proposal_id: str, vault: VaultRow, draft: Draft, movement: OutgoingAmount) -> ProposalRow:
    order, funding, now = draft.order, draft.funding, movement.proposed_at
    service = ctx.caller.service
    intent, fee = funding.intent, funding.selection.fee
    recipients = order.recipients
    if recipients is None:
        recipients = tuple(payment.address for payment in intent.payments)
    return ProposalRow(
        id=proposal_id,
        family_id=order.family_id or proposal_id,
        workspace_id=vault.workspace_id,
        vault_id=vault.id,
        profile_key_id=order.profile_key_id,
        tx_type=order.kind.value,
        status=ProposalStatus.PENDING.value,
        created_by=ctx.caller.user_id,
        created_by_program=service and ctx.db.get_one(ServiceAccountRow, service.account_id).name,
        description=order.description,
        psbt=draft.built.raw,
        txid_expected=draft.txid,
        recipients=list(recipients),
        amounts_sats=[int(payment.output.amount) for payment in intent.payments],
        fee_sats=fee,
        fee_rate_sat_per_kvb=FeeRate.of(fee, funding.vsize).sat_per_kvb,
        op_return_hex=None if intent.op_return is None else intent.op_return.hex(),
        contract_ids=list(order.contract_ids),
        m=vault.m if order.profile_key_id is None else 1,
        n=vault.n if order.profile_key_id is None else 1,
        movement_sats=movement.amount,
        counts_for_role=order.counts_for_role,
        sweeps=intent.sweeps,
        replaces_id=order.replaces_id,
        expires_at=now + PROPOSAL_LIFETIME,
        created_at=now,
        updated_at=now,
    )


def use_index(db: Session, vault: VaultRow, branch: int, index: int) -> None:
    """Advances the branch's next index after a proposal used ``index``.

    A wallet that restores the vault stops scanning after ``GAP`` unused addresses, and the watcher looks no
    further. Proposals that are never sent must not move it beyond that: then an address is used
    twice, which only reveals that both outputs are ours.
    """
    following = index_after(index)
    # Or the chain shows a coin at an address that is near enough.
    # A literal, as in the index's condition: otherwise SQLite would not use the index.
    on_branch = ChainCoinRow.vault_id == vault.id, ChainCoinRow.branch == literal_column(str(branch))
    used = select(ChainCoinRow.vout).where(*on_branch, ChainCoinRow.address_index >= following - GAP).limit(1)
    if following < GAP or db.scalar(used) is not None:
        name = "next_change_index" if branch == CHANGE else "next_receive_index"
        setattr(vault, name, max(getattr(vault, name), following))
