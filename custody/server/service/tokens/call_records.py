"""Calls on tokens as their record, a slice at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import TypeAdapter
from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from custody.schemas import asset_tokens as wire
from custody.schemas.asset_tokens import ContractCallsQuery
from custody.server.domain.caller import WorkspaceAccess
from custody.server.domain.errors import NotFound
from custody.server.service.stored_vaults import vault_in
from custody.server.service.token_status import Standing, standings
from custody.server.service.tokens.contract_records import contract_in
from custody.server.store.models import ContractCall

_ARGS = TypeAdapter(list[wire.CallArg])


@dataclass(frozen=True)
class CallPage:
    """Oldest first. ``total`` counts without the slice."""

    items: list[wire.ContractCall]
    total: int
    has_more: bool


def call_in(db: Session, access: WorkspaceAccess, call_uid: int) -> ContractCall:
    """Raises NotFound for a call of another workspace too (P24)."""
    call = db.get(ContractCall, call_uid)
    if call is None or call.workspace_id != access.workspace_id:
        raise NotFound("There is no such call in this workspace.")
    return call


def call_page(db: Session, access: WorkspaceAccess, wanted: ContractCallsQuery) -> CallPage:
    """Raises NotFound (token, vault)."""
    query = _matching(db, access, wanted)
    total = db.scalar(query.with_only_columns(func.count())) or 0
    if wanted.after is not None:
        query = query.where(ContractCall.uid > wanted.after)
    found = db.scalars(query.order_by(ContractCall.uid).limit(wanted.limit + 1)).all()
    items = call_records(db, access.chain, found[: wanted.limit])
    return CallPage(items, total, has_more=len(found) > wanted.limit)


def _matching(db: Session, access: WorkspaceAccess, wanted: ContractCallsQuery) -> Select[ContractCall]:
    """The workspace's own calls, of others' tokens too: what other workspaces do with a token is theirs."""
    query = select(ContractCall).where(ContractCall.workspace_id == access.workspace_id)
    if wanted.contract_uid is not None:
        query = query.where(ContractCall.contract_uid == contract_in(db, access, wanted.contract_uid).uid)
    if wanted.vault_id is not None:
        query = query.where(ContractCall.vault_id == vault_in(db, access, wanted.vault_id).id)
    return query


def call_records(db: Session, chain: str, calls: Sequence[ContractCall]) -> list[wire.ContractCall]:
    """In the order given."""
    stands = standings(db, chain, [call.family_id for call in calls])
    return [_record(call, stands[call.family_id]) for call in calls]


def _record(call: ContractCall, standing: Standing) -> wire.ContractCall:
    return wire.ContractCall(
        uid=call.uid,
        status=standing.status,
        contract_uid=call.contract_uid,
        wallet_id=call.vault_id,
        function_name=cast("wire.FunctionName", call.function_name),
        args=_ARGS.validate_python(call.args),
        psbt_id=standing.best.id,
        tx_id=standing.best.txid,
        failure_reason=standing.reason,
        created_by=str(call.created_by),
        created_at=call.created_at,
        updated_at=standing.updated_at,
        confirmed_at=standing.confirmed_at,
    )
