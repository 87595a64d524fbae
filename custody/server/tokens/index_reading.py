"""What the index of tokens says: how far it has read, a vault's holdings, whitelists, and a vault's movements
of tokens with the holding after each. Unknown figures are never shown as zero.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Row, ScalarSelect, and_, func, select
from sqlalchemy.orm import Session

from custody.schemas import asset_tokens as wire
from custody.schemas.asset_tokens import TOKEN_HISTORY, TOKENS, WORKSPACE_WHITELIST, CallStatus
from custody.schemas.common import Listed, Unreadable, VaultQuery
from custody.server.calls import Ctx, serves
from custody.server.errors import ChainUnavailable, NotFound
from custody.server.rules.credentials import WorkspaceAccess
from custody.server.shown import shape_of, shown
from custody.server.store.models import (
    AddressBookEntryRow,
    ChainBlockRow,
    ContractRow,
    ProposalRow,
    TokenBlockRow,
    TokenCellRow,
    TokenEffectRow,
    VaultRow,
)
from custody.server.store.store import going_on, rows_in
from custody.server.tokens.state import Cells
from custody.server.tokens.status import token_families
from custody.server.vaults.stored import address_script, vault_in
from multisig import Network, decode_address, encode_address
from multisig.tokens import format_units, token_amount
from multisig.tokens.machine import Cell

# The watcher and the indexer read the chain independently: one may have a new block a moment before the
# other.
TOLERATED_LAG = 1


class IndexedBlock(NamedTuple):
    """The last block that the index has read; its height is -1 where there is none."""

    height: int
    block_hash: str | None


def require_current(db: Session, chain: str) -> IndexedBlock:
    """Raises ChainUnavailable where the index is so far behind the chain, or on a branch that the chain has
    left, that its figures are out of date.
    """
    read, trouble = last_read(db, chain)
    if trouble is not None:
        hint = "The chain's blocks are still being read; nothing was changed. Try again in a moment."
        raise ChainUnavailable(trouble, hint=hint)
    return read


def last_read(db: Session, chain: str) -> tuple[IndexedBlock, str | None]:
    """What it has read, and why it is behind; None where it is not.

    A height does not identify the branch: after a reorganisation that the watcher saw, the index may have the
    same height on the stale branch. So both must have the same block at the lower of their heights.
    """
    is_same = and_(
        TokenBlockRow.chain == ChainBlockRow.chain,
        TokenBlockRow.height == ChainBlockRow.height,
        TokenBlockRow.block_hash == ChainBlockRow.block_hash,
    )
    both = select(ChainBlockRow.height).join(TokenBlockRow, is_same).where(ChainBlockRow.chain == chain)
    last = select(TokenBlockRow.block_hash).where(TokenBlockRow.chain == chain)
    tip, read, block_hash, shared = db.execute(
        select(
            _newest(ChainBlockRow, chain),
            _newest(TokenBlockRow, chain),
            last.order_by(TokenBlockRow.height.desc()).limit(1).scalar_subquery(),
            both.order_by(ChainBlockRow.height.desc()).limit(1).scalar_subquery(),
        )
    ).one()
    block = IndexedBlock(-1 if read is None else read, block_hash)
    if tip is None:
        return block, None
    if read is None or read < tip - TOLERATED_LAG:
        upto = "nothing" if read is None else f"block {read}"
        return block, f"The index of tokens is behind: it has read {upto} of {tip}."
    if shared is None or shared < min(read, tip):
        return block, f"The index of tokens is behind: the chain has another block {min(read, tip)} by now."
    return block, None


def _newest(of: type[ChainBlockRow | TokenBlockRow], chain: str) -> "ScalarSelect[int | None]":
    return select(func.max(of.height)).where(of.chain == chain).scalar_subquery()


def contracts_by_id(db: Session, chain: str, contract_ids: Collection[str]) -> dict[str, ContractRow]:
    """The tokens of this platform, by their id on chain: the txid of a version of the deployment."""
    if not contract_ids:
        return {}
    query = (
        select(ProposalRow.txid_expected, ContractRow)
        .join(ContractRow, ContractRow.deploy_family_id == ProposalRow.family_id)
        .where(ContractRow.chain == chain, ProposalRow.txid_expected.in_(contract_ids))
    )
    return dict(db.execute(query).all())


def supplies_of(db: Session, chain: str, contract_ids: Collection[str]) -> dict[str, int]:
    """The supply of each started token, in raw units, after the last block that was read."""
    if not contract_ids:
        return {}
    of_these = TokenCellRow.contract_id.in_(contract_ids)
    started = _numbers(db, of_these, *_at(chain, Cell.STARTED))
    # A cell of zero is not stored.
    return dict.fromkeys(started, 0) | _numbers(db, of_these, *_at(chain, Cell.SUPPLY))


def state_of(db: Session, chain: str, contract_id: str) -> wire.TokenState | None:
    """The state after the last block that was read; None for a token that the index does not know."""
    cells = Cells(db, chain)
    owner = cells.get(contract_id, Cell.OWNER)
    if not isinstance(owner, bytes):
        return None
    return wire.TokenState(
        started=bool(cells.get(contract_id, Cell.STARTED)),
        paused=bool(cells.get(contract_id, Cell.PAUSED)),
        whitelist_on=bool(cells.get(contract_id, Cell.WHITELIST)),
        owner_address=encode_address(owner, Network(chain)) or "",
    )


def _at(chain: str, cell: Cell, holder: bytes = b"") -> tuple[ColumnElement[bool], ...]:
    return TokenCellRow.chain == chain, TokenCellRow.holder == holder, TokenCellRow.cell == int(cell)


def _numbers(db: Session, *where: ColumnElement[bool]) -> dict[str, int]:
    cells = db.execute(select(TokenCellRow.contract_id, TokenCellRow.number).where(*where))
    return {contract_id: number for contract_id, number in cells if number is not None}


@serves(TOKENS)
def tokens(ctx: Ctx, query: VaultQuery) -> Listed[wire.TokenBalance]:
    """The balances of every token that the vault's address holds or owns, the oldest contract first. A token
    whose bytecode is unknown is left out. Raises NotFound (vault), ChainUnavailable (the index is behind).
    """
    db, chain = ctx.db, ctx.access.chain
    vault = vault_in(db, ctx.access, query.vault_id)
    require_current(db, chain)
    script = _script_of(vault, chain)
    held = _numbers(db, *_at(chain, Cell.BALANCE, script))
    owning = select(TokenCellRow.contract_id).where(*_at(chain, Cell.OWNER), TokenCellRow.data == script)
    owned = set(db.scalars(owning))
    contracts = contracts_by_id(db, chain, held.keys() | owned)
    supplies = supplies_of(db, chain, contracts.keys())

    def balances(some: Sequence[tuple[str, ContractRow]]) -> list[wire.TokenBalance]:
        return [_balance(key, one, held.get(key, 0), key in owned, supplies.get(key, 0)) for key, one in some]

    oldest_first = sorted(contracts.items(), key=lambda item: item[1].uid)
    return shown(oldest_first, balances, "contract_uid", lambda item: item[1].uid)


def _script_of(vault: VaultRow, chain: str) -> bytes:
    """Raises NotFound where its row was altered outside the platform (P102)."""
    (script,) = shown(
        [vault],
        lambda some: [decode_address(each.address, Network(chain)) for each in some],
        "ID",
        lambda each: each.id,
    )
    if isinstance(script, Unreadable):
        raise NotFound(f"The vault is not shown. {script.unreadable}")
    return script


def _balance(
    contract_id: str, contract: ContractRow, balance: int, owned: bool, supply: int
) -> wire.TokenBalance:
    return shape_of(
        wire.TokenBalance,
        contract,
        contract_uid=contract.uid,
        contract_address=contract_id,
        balance=str(token_amount(balance)),
        owned=owned,
        total_supply=str(token_amount(supply)),
        max_supply=str(token_amount(contract.max_supply)),
    )


NOT_DEPLOYED = "The token's deployment is not confirmed: it has no list yet."
NOT_KNOWN = "The index of tokens does not know the token's state."


@serves(WORKSPACE_WHITELIST)
def workspace_whitelist(ctx: Ctx, wanted: wire.WorkspaceWhitelistQuery) -> wire.WorkspaceWhitelist:
    """The whitelists of all tokens of the workspace, or of one, without those whose deployment failed."""
    db, access = ctx.db, ctx.access
    query = (
        select(ContractRow, VaultRow.name)
        .join(VaultRow, VaultRow.id == ContractRow.vault_id)
        .where(ContractRow.workspace_id == access.workspace_id)
        .order_by(ContractRow.uid)
    )
    if wanted.contract_uid is not None:
        query = query.where(ContractRow.uid == wanted.contract_uid)
    rows = db.execute(query).all()
    families = token_families(db, access.chain, [contract.deploy_family_id for contract, _ in rows])
    lists = _lists(db, access, [each.best.txid for each in families.values() if each.best.txid is not None])
    _, trouble = last_read(db, access.chain)
    contracts = []
    for contract, vault_name in rows:
        family = families[contract.deploy_family_id]
        listed, error = lists.get(family.best.txid or ""), trouble
        if family.status is CallStatus.FAILED:
            continue
        if error is None and family.status is not CallStatus.CONFIRMED:
            error = NOT_DEPLOYED
        elif error is None and listed is None:
            error = NOT_KNOWN
        contracts.append(
            wire.ContractWhitelist(
                contract_uid=contract.uid,
                symbol=contract.ticker,
                name=contract.name,
                vault_id=contract.vault_id,
                vault_name=vault_name,
                addresses=listed if error is None and listed is not None else [],
                error=error,
            )
        )
    # Where the index is behind, an error for every vault that has tokens.
    vaults = dict.fromkeys(contract.vault_id for contract in contracts)
    errors = [] if trouble is None else [wire.VaultError(vault_id=each, error=trouble) for each in vaults]
    return wire.WorkspaceWhitelist(contracts=contracts, aggregate=_aggregate(contracts), vault_errors=errors)


def _lists(
    db: Session, access: WorkspaceAccess, contract_ids: Collection[str]
) -> dict[str, list[wire.ListedAddress]]:
    """By contract, the owner first, who may always receive, and only once: a list may name the owner too. The
    others in the order of their scripts. A token whose state is not known is left out.
    """
    chain, of_these = access.chain, TokenCellRow.contract_id.in_(contract_ids)
    owning = select(TokenCellRow.contract_id, TokenCellRow.data).where(*_at(chain, Cell.OWNER), of_these)
    scripts = {contract_id: [owner] for contract_id, owner in db.execute(owning) if owner is not None}
    listing = select(TokenCellRow.contract_id, TokenCellRow.holder).where(
        TokenCellRow.chain == chain, TokenCellRow.cell == int(Cell.LISTED), of_these
    )
    for contract_id, holder in db.execute(listing.order_by(TokenCellRow.contract_id, TokenCellRow.holder)):
        if contract_id in scripts and holder != scripts[contract_id][0]:
            scripts[contract_id].append(holder)
    network = Network(chain)
    addresses = {
        script: encode_address(script, network) or "" for each in scripts.values() for script in each
    }
    book = select(AddressBookEntryRow.address, AddressBookEntryRow.name).where(
        AddressBookEntryRow.workspace_id == access.workspace_id
    )
    names = dict(rows_in(db, book, AddressBookEntryRow.address, addresses.values()))
    return {
        contract_id: [
            wire.ListedAddress(address=addresses[script], name=names.get(addresses[script], ""))
            for script in each
        ]
        for contract_id, each in scripts.items()
    }


def _aggregate(contracts: Sequence[wire.ContractWhitelist]) -> list[wire.WhitelistedAddress]:
    """Each address once, sorted by address."""
    addresses: dict[str, wire.WhitelistedAddress] = {}
    for contract in contracts:
        for entry in contract.addresses:
            known = addresses.setdefault(
                entry.address,
                wire.WhitelistedAddress(address=entry.address, name=entry.name, contract_uids=[]),
            )
            known.contract_uids.append(contract.contract_uid)
    return [addresses[address] for address in sorted(addresses)]


@serves(TOKEN_HISTORY)
def token_history(ctx: Ctx, query: wire.TokenHistoryQuery) -> wire.TokenHistory:
    """Raises NotFound (vault, token), ChainUnavailable (the index is behind)."""
    db = ctx.db
    vault = vault_in(db, ctx.access, query.vault_id)
    tip = require_current(db, vault.chain).height
    rows = db.execute(_wanted(ctx, vault, query)).all()
    shown = rows[: query.limit]
    contracts = contracts_by_id(db, vault.chain, {row.contract_id for row in shown})
    has_more = len(rows) > len(shown)
    return wire.TokenHistory(
        vault_id=vault.id,
        movements=[_record(row, contracts[row.contract_id], tip) for row in shown],
        next_cursor=f"{shown[-1].height}.{shown[-1].sequence}" if has_more else None,
    )


def _wanted(ctx: Ctx, vault: VaultRow, query: wire.TokenHistoryQuery) -> Any:
    effects = (
        select(
            TokenEffectRow.txid,
            TokenEffectRow.function,
            TokenEffectRow.contract_id,
            TokenEffectRow.number_before,
            TokenEffectRow.number_after,
            TokenEffectRow.height,
            TokenEffectRow.sequence,
            TokenBlockRow.mined_at,
        )
        .join(
            TokenBlockRow,
            (TokenBlockRow.chain == TokenEffectRow.chain) & (TokenBlockRow.height == TokenEffectRow.height),
        )
        .where(
            TokenEffectRow.chain == vault.chain,
            TokenEffectRow.holder == address_script(vault),
            TokenEffectRow.cell == int(Cell.BALANCE),
        )
    )
    if query.contract_uid is not None:
        contract = ctx.find(ContractRow, query.contract_uid, "token")
        versions = select(ProposalRow.txid_expected).where(ProposalRow.family_id == contract.deploy_family_id)
        effects = effects.where(TokenEffectRow.contract_id.in_(list(ctx.db.scalars(versions))))
    keys = (TokenEffectRow.height, TokenEffectRow.sequence)
    after = None if query.cursor is None else tuple(map(int, query.cursor.split(".")))
    return going_on(effects, keys, after, newest=query.order == "newest").limit(query.limit + 1)


def _record(row: Row[Any], contract: ContractRow, tip: int) -> wire.TokenMovement:
    before, after = row.number_before or 0, row.number_after or 0
    amount = after - before
    sign = "-" if amount < 0 else ""
    return shape_of(
        wire.TokenMovement,
        contract,
        txid=row.txid,
        function=row.function,
        contract_uid=contract.uid,
        contract_address=row.contract_id,
        amount=f"{sign}{_whole(abs(amount), contract)}",
        amount_raw=str(amount),
        holding=_whole(after, contract),
        holding_raw=str(after),
        height=row.height,
        at=row.mined_at,
        confirmations=max(1, tip - row.height + 1),
    )


def _whole(raw: int, contract: ContractRow) -> str:
    return format_units(token_amount(raw), contract.decimals)
