"""A page of stored movements as API records, with their proposals, addresses and labels."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from custody.schemas import history as wire
from custody.server.domain.credentials import WorkspaceAccess
from custody.server.service.proposals.records import names_of
from custody.server.service.proposals.searching import may_read_book
from custody.server.store.models import AddressBookEntry, ChainBlock, ChainCoin, Movement, Proposal, Vault
from multisig import Network, encode_address


def tip_height(db: Session, chain: str) -> int:
    return db.scalar(select(func.max(ChainBlock.height)).where(ChainBlock.chain == chain)) or 0


def movement_records(
    db: Session,
    access: WorkspaceAccess,
    vault: Vault,
    movements: Sequence[Movement],
) -> list[wire.VaultMovement]:
    """In the order given."""
    ids = {one.psbt_id for one in movements if one.psbt_id is not None}
    proposals = {one.id: one for one in db.scalars(select(Proposal).where(Proposal.id.in_(ids)))}
    received = _received(db, vault, [one.txid for one in movements if one.sent_sats == 0])
    outputs = {one.txid: _outputs(one, proposals, received) for one in movements}
    addresses = {output.address for some, _ in outputs.values() for output in some}
    labels = labels_of(db, access, addresses)
    names = names_of(db, {one.created_by for one in proposals.values()})
    tip = tip_height(db, vault.chain)
    return [
        _record(one, proposals.get(one.psbt_id or ""), _Shown(*outputs[one.txid], labels, names), tip)
        for one in movements
    ]


def labels_of(db: Session, access: WorkspaceAccess, addresses: Collection[str]) -> dict[str, str]:
    """Names in the workspace's address book, by address; none for a caller who may not read it."""
    if not addresses or not may_read_book(access):
        return {}
    book = select(AddressBookEntry.address, AddressBookEntry.name).where(
        AddressBookEntry.workspace_id == access.workspace_id, AddressBookEntry.address.in_(addresses)
    )
    return {row.address: row.name for row in db.execute(book)}


@dataclass(frozen=True)
class _Shown:
    outputs: Sequence[wire.MovementOutput]
    more: int
    labels: Mapping[str, str]
    names: Mapping[int, str]


def _received(
    db: Session, vault: Vault, txids: Sequence[str]
) -> Mapping[str, tuple[list[wire.MovementOutput], int]]:
    """By txid, the first outputs that pay the vault, and how many more there are."""
    if not txids:
        return {}
    number = func.row_number().over(partition_by=ChainCoin.txid, order_by=ChainCoin.vout)
    count = func.count().over(partition_by=ChainCoin.txid)
    coins = (
        select(
            ChainCoin.txid,
            ChainCoin.vout,
            ChainCoin.amount_sats,
            ChainCoin.script_pubkey,
            number.label("number"),
            count.label("count"),
        )
        .where(ChainCoin.chain == vault.chain, ChainCoin.txid.in_(txids), ChainCoin.vault_id == vault.id)
        .subquery()
    )
    first = select(coins).where(coins.c.number <= wire.MAX_OUTPUTS).order_by(coins.c.txid, coins.c.vout)
    found = defaultdict[str, list[wire.MovementOutput]](list)
    counts: dict[str, int] = {}
    for txid, vout, amount, script, _, total in db.execute(first):
        address = encode_address(script, Network(vault.chain)) or ""
        found[txid].append(wire.MovementOutput(address=address, amount_sats=amount, vout=vout))
        counts[txid] = total
    return {txid: (some, counts[txid] - len(some)) for txid, some in found.items()}


def _outputs(
    one: Movement,
    proposals: Mapping[str, Proposal],
    received: Mapping[str, tuple[list[wire.MovementOutput], int]],
) -> tuple[Sequence[wire.MovementOutput], int]:
    """The received outputs, or the recipients of the vault's own proposal; those of other transactions are
    unknown.
    """
    if one.sent_sats == 0:
        return received.get(one.txid, ([], 0))
    proposal = proposals.get(one.psbt_id or "")
    if proposal is None:
        return [], 0
    if not proposal.amounts_sats:
        # A token's call may name recipients; what it pays is not bitcoin.
        return [], 0
    paid = list(zip(proposal.recipients, proposal.amounts_sats, strict=True))
    some = [
        wire.MovementOutput(address=address, amount_sats=amount)
        for address, amount in paid[: wire.MAX_OUTPUTS]
    ]
    return some, len(paid) - len(some)


def _record(one: Movement, proposal: Proposal | None, shown: _Shown, tip: int) -> wire.VaultMovement:
    is_own = proposal is not None and one.sent_sats > 0
    outputs = [
        output.model_copy(update={"label": shown.labels.get(output.address)}) for output in shown.outputs
    ]
    return wire.VaultMovement(
        txid=one.txid,
        kind=wire.MovementKind(one.kind),
        status="pending" if one.height is None else "confirmed",
        at=one.mined_at or one.first_seen_at,
        first_seen_at=one.first_seen_at,
        height=one.height,
        block_hash=one.block_hash,
        confirmations=0 if one.height is None else max(1, tip - one.height + 1),
        received_sats=one.received_sats,
        sent_sats=one.sent_sats,
        amount_sats=one.amount_sats,
        fee_sats=proposal.fee_sats if proposal is not None and is_own else None,
        balance_sats=one.balance_sats,
        outputs=outputs,
        more_outputs=shown.more,
        psbt_id=one.psbt_id,
        title=None if proposal is None else proposal.description,
        created_by=None if proposal is None else str(proposal.created_by),
        created_by_name=None if proposal is None else shown.names.get(proposal.created_by),
        replaces_psbt_id=None if proposal is None else proposal.replaces_id,
    )
