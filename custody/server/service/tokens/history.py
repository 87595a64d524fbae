"""A vault's movements of tokens with the holding after each, read from the index's effects."""

from typing import Any

from sqlalchemy import ColumnElement, Row, select, tuple_
from sqlalchemy.orm import Session

from custody.schemas import asset_tokens as wire
from custody.server.domain.credentials import WorkspaceAccess
from custody.server.domain.errors import NotFound
from custody.server.service.stored_vaults import address_script, vault_in
from custody.server.service.tokens.index_reading import contracts_by_id, indexed_height, require_current
from custody.server.store.models import Contract, Proposal, TokenBlock, TokenEffect, Vault
from multisig.tokens import format_units, token_amount
from multisig.tokens.machine import Cell


def token_history(db: Session, access: WorkspaceAccess, query: wire.TokenHistoryQuery) -> wire.TokenHistory:
    """Raises NotFound (vault, token), ChainUnavailable (the index is behind)."""
    vault = vault_in(db, access, query.vault_id)
    require_current(db, vault.chain)
    found = db.execute(_wanted(db, access, vault, query)).all()
    shown = found[: query.limit]
    contracts = contracts_by_id(db, vault.chain, {row.contract_id for row in shown})
    tip = indexed_height(db, vault.chain)
    has_more = len(found) > len(shown)
    return wire.TokenHistory(
        vault_id=vault.id,
        movements=[_record(row, contracts[row.contract_id], tip) for row in shown],
        next_cursor=f"{shown[-1].height}.{shown[-1].sequence}" if has_more else None,
    )


def _wanted(db: Session, access: WorkspaceAccess, vault: Vault, query: wire.TokenHistoryQuery) -> Any:
    effects = (
        select(TokenEffect, TokenBlock.mined_at)
        .with_only_columns(
            TokenEffect.txid,
            TokenEffect.function,
            TokenEffect.contract_id,
            TokenEffect.number_before,
            TokenEffect.number_after,
            TokenEffect.height,
            TokenEffect.sequence,
            TokenBlock.mined_at,
        )
        .join(TokenBlock, (TokenBlock.chain == TokenEffect.chain) & (TokenBlock.height == TokenEffect.height))
        .where(
            TokenEffect.chain == vault.chain,
            TokenEffect.holder == address_script(vault),
            TokenEffect.cell == int(Cell.BALANCE),
        )
    )
    if query.contract_uid is not None:
        effects = effects.where(_is_of(db, access, query.contract_uid))
    keys = (TokenEffect.height, TokenEffect.sequence)
    is_newest = query.order == "newest"
    if query.cursor is not None:
        height, sequence = map(int, query.cursor.split("."))
        after = (height, sequence)
        effects = effects.where(tuple_(*keys) < after if is_newest else tuple_(*keys) > after)
    ordered = effects.order_by(*(key.desc() for key in keys)) if is_newest else effects.order_by(*keys)
    return ordered.limit(query.limit + 1)


def _is_of(db: Session, access: WorkspaceAccess, contract_uid: int) -> ColumnElement[bool]:
    contract = db.get(Contract, contract_uid)
    if contract is None or contract.workspace_id != access.workspace_id:
        raise NotFound("There is no such token in this workspace.")
    versions = select(Proposal.txid_expected).where(Proposal.family_id == contract.deploy_family_id)
    return TokenEffect.contract_id.in_(list(db.scalars(versions)))


def _record(row: Row[Any], contract: Contract, tip: int) -> wire.TokenMovement:
    before, after = row.number_before or 0, row.number_after or 0
    amount = after - before
    sign = "-" if amount < 0 else ""
    return wire.TokenMovement(
        txid=row.txid,
        function=row.function,
        contract_uid=contract.uid,
        contract_address=row.contract_id,
        name=contract.name,
        ticker=contract.ticker,
        decimals=contract.decimals,
        amount=f"{sign}{_whole(abs(amount), contract)}",
        amount_raw=str(amount),
        holding=_whole(after, contract),
        holding_raw=str(after),
        height=row.height,
        at=row.mined_at,
        confirmations=max(1, tip - row.height + 1),
    )


def _whole(raw: int, contract: Contract) -> str:
    return format_units(token_amount(raw), contract.decimals)
