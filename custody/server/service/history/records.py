"""A page of stored movements as API records, with their proposals, addresses, labels and values; these come
from the operator's file of daily rates, which is read again when it changes.
"""

import os
import stat
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Final

import structlog
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from custody.schemas import history as wire
from custody.server.domain.credentials import WorkspaceAccess
from custody.server.domain.errors import Misconfigured
from custody.server.domain.history import BadRates, DailyRates, parse_rates
from custody.server.service.proposals.records import names_of
from custody.server.service.proposals.searching import may_read_book
from custody.server.store.models import AddressBookEntry, ChainBlock, ChainCoin, Movement, Proposal, Vault
from multisig import Network, encode_address

log = structlog.get_logger()

MAX_BYTES: Final = 1_000_000


class RatesMisconfigured(Misconfigured):
    hint = "Each line is like 2026-05-01,EUR,81234.56. Correct the file, or unset CUSTODY_RATES_FILE."


@dataclass
class RatesFile:
    """If the file becomes unreadable or malformed, the last rates stay in use; the log has one warning for
    each version of the file.
    """

    path: Path
    _known: DailyRates | None = None
    # Which version of the file was read last, good or bad.
    _version: object = None
    _lock: Lock = field(default_factory=Lock)

    def require(self) -> None:
        """Reads the file when the server starts. Raises RatesMisconfigured."""
        with self._lock:
            try:
                self._read()
            except (BadRates, OSError) as error:
                raise RatesMisconfigured(
                    f"The rates in {self.path} cannot be used: {_words(error)}."
                ) from None

    def rates(self) -> DailyRates | None:
        """The current rates; None where none could be read yet."""
        with self._lock:
            before = self._version
            try:
                self._read()
            except (BadRates, OSError) as error:
                if isinstance(error, OSError):
                    self._version = error.errno
                if self._version != before:
                    log.warning("rates not read", file=str(self.path), reason=_words(error))
            return self._known

    def _read(self) -> None:
        """Raises BadRates, OSError."""
        # Opening a FIFO must not block.
        handle = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(file.fileno())
            version = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
            if version == self._version:
                return
            self._version = version
            if not stat.S_ISREG(status.st_mode):
                raise BadRates("it is not a regular file")
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise BadRates(f"it has more than {MAX_BYTES:,} bytes")
        try:
            # Spreadsheets write a byte order mark.
            self._known = parse_rates(data.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise BadRates("it is not in UTF-8") from None


def _words(error: BadRates | OSError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def tip_height(db: Session, chain: str) -> int:
    return db.scalar(select(func.max(ChainBlock.height)).where(ChainBlock.chain == chain)) or 0


def movement_records(
    db: Session,
    access: WorkspaceAccess,
    vault: Vault,
    movements: Sequence[Movement],
    rates: DailyRates | None,
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
        _record(one, proposals.get(one.psbt_id or ""), _Shown(*outputs[one.txid], labels, names, rates), tip)
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
    rates: DailyRates | None


def _fiat(one: Movement, rates: DailyRates | None) -> wire.FiatValue | None:
    """The value on the day of its block, in UTC."""
    rate = rates.on(one.mined_at.date()) if rates is not None and one.mined_at is not None else None
    if rate is None:
        return None
    return wire.FiatValue(
        currency=rate.currency,
        rate=f"{rate.per_btc:f}",
        rate_date=rate.day,
        amount=f"{rate.value_of(one.amount_sats):f}",
    )


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
        fiat=_fiat(one, shown.rates),
    )
