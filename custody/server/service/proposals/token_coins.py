"""The coins at a vault's own address: a token's transaction begins with one, for its first input tells who calls (CPT-1)."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    bindparam,
    exists,
    literal_column,
    or_,
    select,
)
from sqlalchemy.orm import Session

from custody.server.domain.selection import MAX_INPUTS
from custody.server.service.proposals.coins import COINBASE_MATURITY, Holding, is_locked
from custody.server.service.stored_vaults import ADDRESS_INDEX, address_script
from custody.server.store.models import ChainCoin, Contract, Proposal, TokenCell, Vault
from multisig import RECEIVE, Sats, TxOut
from multisig.tokens.machine import Cell

# A call of 250 vB at 40 sat/vB. A coin below it is kept only where there is no larger one.
WORTH_KEEPING = Sats(10_000)


class AwaitedCoin(NamedTuple):
    """A coin in no block yet. ``proposal_id``: of the vault's own proposal that made it, None where it is a deposit."""

    proposal_id: str | None


def token_coins(db: Session, vault: Vault, tip_height: int) -> list[Holding]:
    """Confirmed, mature coins at the vault's address that no proposal holds, the largest first."""
    return [holding for holding, is_locked in _at_address(db, vault, tip_height) if not is_locked]


def has_locked_token_coin(db: Session, vault: Vault, tip_height: int) -> bool:
    """Whether proposals hold any."""
    return any(is_locked for _, is_locked in _at_address(db, vault, tip_height))


def awaited_token_coin(db: Session, vault: Vault, least: Sats) -> AwaitedCoin | None:
    """A coin at the vault's address of at least so much, in no block yet, that no proposal holds.

    The vault's own before what others sent: they may take theirs back.
    """
    row = db.execute(_AWAITED, {"vault_id": vault.id, "least": least}).one_or_none()
    return None if row is None else AwaitedCoin(*row)


def kept_for_tokens(
    db: Session, vault: Vault, tip_height: int, outputs: Iterable[TxOut] = ()
) -> Holding | None:
    """The coin that a send leaves at the vault's address, where tokens need one: the smallest that pays for a call, else the largest.

    None where the send itself pays something there.
    """
    if not has_tokens(db, vault):
        return None
    own = address_script(vault)
    if any(output.script_pubkey == own for output in outputs):
        return None
    coins = token_coins(db, vault, tip_height)
    enough = [holding for holding in coins if holding.amount >= WORTH_KEEPING]
    return next(iter(enough[-1:] or coins), None)


def has_tokens(db: Session, vault: Vault) -> bool:
    """Whether it made one, or owns or holds one of its workspace: what a stranger sends or hands it reserves nothing."""
    values = {
        "vault_id": vault.id,
        "workspace_id": vault.workspace_id,
        "chain": vault.chain,
        "script": address_script(vault),
    }
    return bool(db.scalar(_HAS_TOKENS, values))


def _at_address(db: Session, vault: Vault, tip_height: int) -> Sequence[tuple[Holding, bool]]:
    values = {"vault_id": vault.id, "mature_height": tip_height + 1 - COINBASE_MATURITY}
    return [
        (Holding(txid, vout, Sats(amount), height, RECEIVE, ADDRESS_INDEX), is_held)
        for txid, vout, amount, height, is_held in db.execute(_AT_ADDRESS, values)
    ]


def _unspent_at_address() -> tuple[ColumnElement[bool], ...]:
    return (
        ChainCoin.vault_id == bindparam("vault_id"),
        ChainCoin.branch == literal_column(str(RECEIVE)),
        ChainCoin.address_index == ADDRESS_INDEX,
        ChainCoin.spent_by.is_(None),
    )


def _coins_at_address() -> Select[str, int, int, int | None, bool]:
    return (
        select(
            ChainCoin.txid,
            ChainCoin.vout,
            ChainCoin.amount_sats,
            ChainCoin.height,
            is_locked().label("is_locked"),
        )
        .where(
            *_unspent_at_address(),
            ChainCoin.height.is_not(None),
            or_(ChainCoin.is_coinbase.is_(False), ChainCoin.height <= bindparam("mature_height")),
        )
        .order_by(ChainCoin.amount_sats.desc(), ChainCoin.txid, ChainCoin.vout)
        # Whoever knows the address may send any number: what proposals hold of the largest is told apart here.
        .limit(2 * MAX_INPUTS)
    )


def _awaited_at_address() -> Select[Any]:
    # What a member forwards is a deposit like any other's, and who forwards is not said.
    is_maker = and_(
        Proposal.txid_expected == ChainCoin.txid,
        Proposal.vault_id == bindparam("vault_id"),
        Proposal.profile_key_id.is_(None),
    )
    return (
        select(Proposal.id)
        .select_from(ChainCoin)
        .outerjoin(Proposal, is_maker)
        .where(
            *_unspent_at_address(),
            ChainCoin.height.is_(None),
            ChainCoin.amount_sats >= bindparam("least"),
            ~is_locked(),
        )
        .order_by(Proposal.id.is_(None), ChainCoin.amount_sats.desc())
        .limit(1)
    )


def _any_token() -> Select[bool]:
    # Looked for by the workspace's own tokens, each by its key: anybody may send the vault any number of others.
    of_workspace = (
        select(Proposal.txid_expected)
        .join(Contract, Contract.deploy_family_id == Proposal.family_id)
        .where(Contract.workspace_id == bindparam("workspace_id"), Contract.chain == bindparam("chain"))
    )
    cell = exists().where(TokenCell.chain == bindparam("chain"), TokenCell.contract_id.in_(of_workspace))
    holds = cell.where(TokenCell.cell == int(Cell.BALANCE), TokenCell.holder == bindparam("script"))
    owns = cell.where(
        TokenCell.cell == int(Cell.OWNER), TokenCell.holder == b"", TokenCell.data == bindparam("script")
    )
    made = exists().where(Contract.vault_id == bindparam("vault_id"))
    return select(or_(made, holds, owns))


_AT_ADDRESS = _coins_at_address()
_AWAITED = _awaited_at_address()
_HAS_TOKENS = _any_token()
