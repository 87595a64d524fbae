"""Calling a token's functions: each call is a proposal, and is refused where it would have no effect."""

import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from custody.schemas.asset_tokens import (
    ADD_TO_CONTRACT_WHITELIST,
    CALL_CONTRACT,
    PREVIEW_CALL,
    REMOVE_FROM_CONTRACT_WHITELIST,
    RESUBMIT_CONTRACT_CALL,
    CallContractRequest,
    CallContractResponse,
    CallStatus,
    ContractWhitelistRequest,
    ResubmitCallRequest,
    ResubmitCallResponse,
)
from custody.schemas.permissions import PermissionName
from custody.schemas.proposals import PsbtPreview, TxType
from custody.server.calls import Ctx, In, Steps, serves, serves_in_parts
from custody.server.errors import CallNotStalled, DeploymentNotConfirmed, PermissionDenied
from custody.server.jobs.outbox import BROADCAST, enqueue
from custody.server.limits.stored import FOR_ROLE, FOR_VAULT, movement_of
from custody.server.network.backends import Quote
from custody.server.proposals.bounds import vault_to_spend
from custody.server.proposals.drafts import Funding, Order
from custody.server.proposals.propose import preview, propose
from custody.server.proposals.signing import RECHECK_SECONDS
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import WorkspaceAccess
from custody.server.store.models import ContractCallRow, ProposalRow
from custody.server.tokens.arguments import (
    PlannedCall,
    read_call,
    read_listing,
    require_vault_address,
)
from custody.server.tokens.index_reading import require_current
from custody.server.tokens.proposing import token_order
from custody.server.tokens.records import call_in, contract_in
from custody.server.tokens.state import CallContext, deployed_id, require_effect, waiting_calls
from custody.server.tokens.status import TokenFamily, token_families
from multisig import Network
from multisig.tokens import Function, encode_payload

CallRequest = CallContractRequest | ContractWhitelistRequest


CALLED = Event(
    "TOKEN_CALLED",
    "call {call}, {function} of contract {contract} by vault {vault}, proposal {proposal}, tx {txid}",
    "proposed a call of the token {contract} by the vault {vault}: {function}",
    Category.TOKENS,
)
RESUBMITTED = Event(
    "CALL_RESUBMITTED",
    "call {call}, proposal {proposal}, tx {txid}",
    "sent the call of the proposal {proposal} to the network again",
    Category.TOKENS,
)


@serves_in_parts(CALL_CONTRACT)
def call_contract(ctx: Ctx, request: CallContractRequest) -> Steps[CallContractResponse]:
    return _proposed(ctx, request)


@serves(PREVIEW_CALL)
def preview_call(ctx: Ctx, request: CallContractRequest) -> PsbtPreview:
    """The same draft and the same checks. Raises what `call_contract` would."""
    return preview(ctx, _order(request, None, ctx))


@serves_in_parts(ADD_TO_CONTRACT_WHITELIST)
def add_to_contract_whitelist(ctx: Ctx, request: ContractWhitelistRequest) -> Steps[CallContractResponse]:
    return _proposed(ctx, request, Function.ADD_TO_WHITELIST)


@serves_in_parts(REMOVE_FROM_CONTRACT_WHITELIST)
def remove_from_contract_whitelist(
    ctx: Ctx, request: ContractWhitelistRequest
) -> Steps[CallContractResponse]:
    return _proposed(ctx, request, Function.REMOVE_FROM_WHITELIST)


def _proposed(ctx: Ctx, request: CallRequest, listing: Function | None = None) -> Steps[CallContractResponse]:
    """``listing``: the function, where the path names it and not the request. The call's effect is checked
    again under the lock, after the calls that were proposed since the draft.

    Raises NotFound (vault, contract), PermissionDenied, Invalid, WrongNetworkAddress; DeploymentNotConfirmed,
    and the rule that the call would break (`refusal`); TokenCoinMissing, LockedFunds, InsufficientFunds;
    ChainUnavailable; IndexBehind; RoleLimitExceeded, VaultLimitExceeded, PolicyUnavailable.
    """
    proposed = yield from propose(ctx, partial(_order, request, listing))
    row, db = proposed.row, proposed.ctx.db
    planned = _planned(request, listing, Network(proposed.draft.order.chain))
    call = _call(request.contract_uid, planned, row)
    db.add(call)
    db.flush()
    proposed.announce(CALLED, call=call.uid, function=call.function_name, contract=call.contract_uid)
    return CallContractResponse(psbt_id=row.id, psbt_base64=proposed.base64, call_uid=call.uid)


def _order(request: CallRequest, listing: Function | None, ctx: Ctx) -> Order:
    db = ctx.db
    vault = vault_to_spend(db, ctx.access, request.wallet_id)
    contract = contract_in(db, ctx.access, request.contract_uid)
    planned = _planned(request, listing, Network(vault.chain))
    function = planned.function
    _require_permission(ctx.access, function)
    require_vault_address(db, vault, planned)
    # A block that the index has not read may leave the call without effect, and its fee would be wasted.
    block = require_current(db, contract.chain)
    contract_id = deployed_id(db, contract)
    if contract_id is None:
        raise DeploymentNotConfirmed("The token's deployment has no confirmation, or lost it again.")
    context = CallContext(contract_id, block, waiting_calls(db, contract, vault.workspace_id))
    payload = encode_payload(planned.call(contract_id))
    order = token_order(ctx, TxType.CALL, vault, payload, request.priority, vault_at="/wallet_id")

    def fund(quote: Quote) -> Iterable[Funding]:
        require_effect(db, vault, planned, context)
        return order.fund(quote)

    named = request.recipients if isinstance(request, CallContractRequest) else None
    return replace(
        order,
        fund=fund,
        rests_on=context,
        recipients=tuple(named or ()),
        contract_ids=(contract_id,),
        # The specification's table: minting and burning count only for the vault's limit.
        counts_for_role=function not in FOR_VAULT - FOR_ROLE,
        tokens=movement_of(contract, vault, function, planned.amount, planned.address, ctx.now),
    )


def _planned(request: CallRequest, listing: Function | None, network: Network) -> PlannedCall:
    if isinstance(request, CallContractRequest):
        return read_call(request, network)
    assert listing is not None, "the path of a whitelist request names the function"
    return read_listing(request, listing, network)


def _require_permission(access: WorkspaceAccess, function: Function) -> None:
    needed = PermissionName.PAYMENT_INIT if function is Function.TRANSFER else PermissionName.MANAGE_WORKSPACE
    if not access.holds_any(frozenset({needed})):
        raise PermissionDenied(f"Your role in this workspace does not carry {needed.value}.")


def _call(contract_uid: int, planned: PlannedCall, proposal: ProposalRow) -> ContractCallRow:
    return ContractCallRow(
        contract_uid=contract_uid,
        workspace_id=proposal.workspace_id,
        vault_id=proposal.vault_id,
        function_name=planned.function.wire_name,
        args=[arg.model_dump() for arg in planned.args],
        amount=planned.amount,
        address_script=planned.address,
        family_id=proposal.family_id,
        created_by=proposal.created_by,
        created_at=proposal.created_at,
    )


@serves_in_parts(RESUBMIT_CONTRACT_CALL, first=In.WRITE)
def resubmit_contract_call(ctx: Ctx, request: ResubmitCallRequest) -> Steps[ResubmitCallResponse]:
    """Broadcasts the stored final transaction of a stalled call again (P15), and waits a little for its
    status. Idempotent. Raises NotFound, CallNotStalled.
    """
    call, family = _call_and_family(ctx, request.call_uid)
    if family.status is not CallStatus.STALLED:
        raise CallNotStalled(f"The call is {family.status}: only a stalled one is sent again.")
    txid, status = family.best.txid_expected, CallStatus(family.status)
    enqueue(ctx.db, BROADCAST, family.best.id, ctx.now)
    ctx.event(RESUBMITTED, call=call.uid, proposal=family.best.id, txid=txid)
    deadline, changes = time.monotonic() + ctx.services.broadcast_wait_seconds, ctx.tools.changes
    while status is CallStatus.STALLED and not changes.closing and (left := deadline - time.monotonic()) > 0:
        seen = changes.version
        ctx = yield In.SNAPSHOT
        status = _call_and_family(ctx, request.call_uid)[1].status
        if status is CallStatus.STALLED:
            yield In.NOTHING
            changes.wait(seen, min(left, RECHECK_SECONDS))
    return ResubmitCallResponse(txid=txid, status=status)


def _call_and_family(ctx: Ctx, uid: int) -> tuple[ContractCallRow, TokenFamily]:
    """Raises NotFound."""
    call = call_in(ctx.db, ctx.access, uid)
    return call, token_families(ctx.db, ctx.access.chain, [call.family_id])[call.family_id]
