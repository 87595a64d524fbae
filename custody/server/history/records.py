"""A page of stored movements as API records, with their proposals, addresses and labels."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from custody.schemas import history as wire
from custody.schemas.address_book import KEEPERS
from custody.server.people.names import names_of, proposer_name
from custody.server.rules.credentials import WorkspaceAccess
from custody.server.shown import shape_of
from custody.server.store.models import (
    AddressBookEntryRow,
    ChainBlockRow,
    ChainCoinRow,
    MovementRow,
    ProposalRow,
    VaultRow,
)
from custody.server.store.store import read_once
from custody.server.vaults.stored import vaults_at
from multisig import Network, encode_address


def tip_height(db: Session, chain: str) -> int:
    newest = select(func.max(ChainBlockRow.height)).where(ChainBlockRow.chain == chain)
    return read_once(db, ("tip", chain), lambda: db.scalar(newest) or 0)


def movement_records(
    db: Session,
    access: WorkspaceAccess,
    vaults: Sequence[VaultRow],
    movements: Sequence[MovementRow],
) -> list[wire.VaultMovement]:
    """In the order given, which are of these vaults."""
    ids = {one.psbt_id for one in movements if one.psbt_id is not None}
    of_them = select(ProposalRow).where(ProposalRow.id.in_(ids))
    proposals = {one.id: one for one in (db.scalars(of_them) if ids else ())}
    received = _received(db, vaults, [one.txid for one in movements if one.sent_sats == 0])
    outputs = {one.txid: _outputs(one, proposals, received) for one in movements}
    labels = labels_of(db, access, {output.address for some, _ in outputs.values() for output in some})
    paid = {output.address for one in movements if one.sent_sats for output in outputs[one.txid][0]}
    labels |= vaults_at(db, [access.workspace_id], Network(vaults[0].chain), paid)
    names = names_of(db, access, {one.created_by for one in proposals.values()})
    tip, records = tip_height(db, vaults[0].chain), []
    for one in movements:
        proposal, (shown, more) = proposals.get(one.psbt_id or ""), outputs[one.txid]
        record = shape_of(
            wire.VaultMovement,
            one,
            status="pending" if one.height is None else "confirmed",
            at=one.mined_at or one.first_seen_at,
            confirmations=0 if one.height is None else max(1, tip - one.height + 1),
            fee_sats=proposal.fee_sats if proposal is not None and one.sent_sats > 0 else None,
            outputs=[each.model_copy(update={"label": labels.get(each.address)}) for each in shown],
            more_outputs=more,
            title=None if proposal is None else proposal.description,
            created_by=None if proposal is None else str(proposal.created_by),
            created_by_name=proposal and proposer_name(proposal, names),
            replaces_psbt_id=None if proposal is None else proposal.replaces_id,
        )
        records.append(record)
    return records


def as_one(
    db: Session, vaults: Sequence[VaultRow], records: Sequence[wire.VaultMovement]
) -> list[wire.VaultMovement]:
    """The vaults as one: what a transaction between them costs is its fee, and the balance is that of all."""
    rank = {vault.id: number for number, vault in enumerate(vaults)}
    heights = {one.height for one in records if one.height is not None}
    txids = [one.txid for one in records]
    is_wanted = or_(MovementRow.height.in_(heights), MovementRow.txid.in_(txids))
    sides = defaultdict[str, list[MovementRow]](list)
    for side in db.scalars(select(MovementRow).where(MovementRow.vault_id.in_(rank), is_wanted)):
        sides[side.txid].append(side)
    # As `movements` orders them.
    lines = [max(some, key=lambda side: (side.sent_sats, side.vault_id)) for some in sides.values()]
    lines = sorted((one for one in lines if one.height), key=lambda one: (one.place, rank[one.vault_id]))
    balance, after = _balances_before(db, rank, heights), dict[str, int]()
    for one in lines:
        balance[one.height] += sum(side.amount_sats for side in sides[one.txid])
        after[one.txid] = balance[one.height]
    return [
        one.model_copy(
            update={
                "received_sats": sum(side.received_sats for side in sides[one.txid]),
                "sent_sats": sum(side.sent_sats for side in sides[one.txid]),
                "amount_sats": sum(side.amount_sats for side in sides[one.txid]),
                "balance_sats": after.get(one.txid),
            }
        )
        for one in records
    ]


def _balances_before(
    db: Session, vault_ids: Collection[str], heights: Collection[int]
) -> dict[int | None, int]:
    """Of all the vaults together, before the blocks of these heights."""
    at = select(MovementRow.height).where(
        MovementRow.vault_id.in_(vault_ids), MovementRow.height.in_(heights)
    )
    block = at.distinct().subquery()
    last = (
        select(MovementRow.balance_sats)
        .where(MovementRow.height < block.c.height)
        .order_by(MovementRow.height.desc(), MovementRow.place.desc())
        .limit(1)
        .correlate(block)
    )
    each = (last.where(MovementRow.vault_id == one).scalar_subquery() for one in vault_ids)
    sums = db.execute(select(block.c.height, *each))
    return {height: sum(filter(None, balances)) for height, *balances in sums}


def labels_of(db: Session, access: WorkspaceAccess, addresses: Collection[str]) -> dict[str, str]:
    """Names in the workspace's address book, by address; none for a caller who may not read it."""
    if not addresses or not access.holds_any(KEEPERS):
        return {}
    book = select(AddressBookEntryRow.address, AddressBookEntryRow.name).where(
        AddressBookEntryRow.workspace_id == access.workspace_id, AddressBookEntryRow.address.in_(addresses)
    )
    return {row.address: row.name for row in db.execute(book)}


def _received(
    db: Session, vaults: Sequence[VaultRow], txids: Sequence[str]
) -> Mapping[str, tuple[list[wire.MovementOutput], int]]:
    """By txid, the first outputs that pay the vaults, and how many more there are."""
    if not txids:
        return {}
    number = func.row_number().over(partition_by=ChainCoinRow.txid, order_by=ChainCoinRow.vout)
    count = func.count().over(partition_by=ChainCoinRow.txid)
    coins = (
        select(
            ChainCoinRow.txid,
            ChainCoinRow.vout,
            ChainCoinRow.amount_sats,
            ChainCoinRow.script_pubkey,
            number.label("number"),
            count.label("count"),
        )
        .where(ChainCoinRow.chain == vaults[0].chain, ChainCoinRow.txid.in_(txids))
        .where(ChainCoinRow.vault_id.in_([vault.id for vault in vaults]))
        .subquery()
    )
    first = select(coins).where(coins.c.number <= wire.MAX_OUTPUTS).order_by(coins.c.txid, coins.c.vout)
    received = defaultdict[str, list[wire.MovementOutput]](list)
    counts: dict[str, int] = {}
    for txid, vout, amount, script, _, total in db.execute(first):
        address = encode_address(script, Network(vaults[0].chain)) or ""
        received[txid].append(wire.MovementOutput(address=address, amount_sats=amount, vout=vout))
        counts[txid] = total
    return {txid: (some, counts[txid] - len(some)) for txid, some in received.items()}


def _outputs(
    one: MovementRow,
    proposals: Mapping[str, ProposalRow],
    received: Mapping[str, tuple[list[wire.MovementOutput], int]],
) -> tuple[Sequence[wire.MovementOutput], int]:
    """The received outputs, or the recipients of the vault's own proposal; those of other transactions are
    unknown.
    """
    if one.sent_sats == 0:
        return received.get(one.txid, ([], 0))
    proposal = proposals.get(one.psbt_id or "")
    # A token's call may name recipients; what it pays is not bitcoin.
    if proposal is None or not proposal.amounts_sats:
        return [], 0
    paid = list(zip(proposal.recipients, proposal.amounts_sats, strict=True))
    some = [
        wire.MovementOutput(address=address, amount_sats=amount)
        for address, amount in paid[: wire.MAX_OUTPUTS]
    ]
    return some, len(paid) - len(some)
