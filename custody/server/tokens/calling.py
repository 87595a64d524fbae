"""Calling a token's functions: each call is a proposal, and is refused where it would have no effect."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from custody.schemas import asset_tokens as wire
from custody.schemas.call import PermissionName
from custody.schemas.proposals import PsbtPreview, TxType
from custody.server.calls import Ctx, In, Steps, serves, serves_in_parts
from custody.server.errors import CallNotStalled, DeploymentNotConfirmed, PermissionDenied
from custody.server.jobs.outbox import BROADCAST, enqueue
from custody.server.limits.stored import FOR_ROLE, FOR_VAULT, movement_of
from custody.server.network.backends import Quote
from custody.server.proposals.bounds import vault_to_spend
from custody.server.proposals.drafts import Funding, Order
from custody.server.proposals.propose import preview, propose
from custody.server.rules.audit import Category, Event
from custody.server.store.models import ContractCallRow
from custody.server.tokens import call_checks
from custody.server.tokens.index_reading import require_current
from custody.server.tokens.proposing import token_order
from custody.server.tokens.records import contract_in
from custody.server.tokens.status import TokenFamily, token_families
from multisig import Network
from multisig.tokens import Function, encode_payload

CALLED = Event(
    "TOKEN_CALLED",
    "proposed a call of the token {contract} by the vault {vault}: {function}"
    " // call {call}, proposal {proposal}, tx {txid}",
    Category.TOKENS,
)
RESUBMITTED = Event(
    "CALL_RESUBMITTED",
    "sent the call of the proposal {proposal} to the network again // call {call}, tx {txid}",
    Category.TOKENS,
)


@serves_in_parts(wire.CALL_CONTRACT)
def call_contract(ctx: Ctx, request: wire.CallContractRequest) -> Steps[wire.CallContractResponse]:
    return _proposed(ctx, request)


@serves(wire.PREVIEW_CALL)
def preview_call(ctx: Ctx, request: wire.CallContractRequest) -> PsbtPreview:
    """The same draft and the same checks. Raises what `call_contract` would."""
    return preview(ctx, _order(request, call_checks.ADDRESS, ctx))


@serves_in_parts(wire.ADD_TO_CONTRACT_WHITELIST)
def add_to_contract_whitelist(
    ctx: Ctx, request: wire.ContractWhitelistRequest
) -> Steps[wire.CallContractResponse]:
    return _proposed(ctx, _listing(request, "add_to_whitelist"), "/address")


@serves_in_parts(wire.REMOVE_FROM_CONTRACT_WHITELIST)
def remove_from_contract_whitelist(
    ctx: Ctx, request: wire.ContractWhitelistRequest
) -> Steps[wire.CallContractResponse]:
    return _proposed(ctx, _listing(request, "remove_from_whitelist"), "/address")


def _listing(
    request: wire.ContractWhitelistRequest, function_name: wire.FunctionName
) -> wire.CallContractRequest:
    """The call that a path of its own names."""
    return wire.CallContractRequest(
        contract_uid=request.contract_uid,
        wallet_id=request.wallet_id,
        function_name=function_name,
        args=[wire.TextArg(type="str", value=request.address)],
        workspace_id=request.workspace_id,
        priority=request.priority,
    )


def _proposed(
    ctx: Ctx, request: wire.CallContractRequest, address_at: str = call_checks.ADDRESS
) -> Steps[wire.CallContractResponse]:
    """The call's effect is checked again under the lock, after the calls that were proposed since the draft.
    ``address_at``: where the request has the address.

    Raises NotFound (vault, contract), PermissionDenied, Invalid, WrongNetworkAddress; DeploymentNotConfirmed,
    and the rule that the call would break (`refusal`); TokenCoinMissing, LockedFunds, InsufficientFunds;
    ChainUnavailable (the index is behind, too); RoleLimitExceeded, VaultLimitExceeded, PolicyUnavailable.
    """
    proposed = yield from propose(ctx, partial(_order, request, address_at))
    row = proposed.row
    planned = call_checks.read_call(request, Network(proposed.draft.order.chain), address_at)
    call = ContractCallRow(
        contract_uid=request.contract_uid,
        workspace_id=row.workspace_id,
        vault_id=row.vault_id,
        function_name=planned.function.wire_name,
        args=[arg.model_dump() for arg in planned.args],
        amount=planned.amount,
        address_script=planned.address,
        family_id=row.family_id,
        created_by=row.created_by,
        created_at=row.created_at,
    )
    proposed.ctx.add(call)
    proposed.announce(CALLED, call=call.uid, function=call.function_name, contract=call.contract_uid)
    return wire.CallContractResponse(psbt_id=row.id, psbt_base64=proposed.base64, call_uid=call.uid)


def _order(request: wire.CallContractRequest, address_at: str, ctx: Ctx) -> Order:
    db = ctx.db
    vault = vault_to_spend(db, ctx.access, request.wallet_id)
    contract, contract_id, _ = contract_in(db, ctx.access, request.contract_uid)
    planned = call_checks.read_call(request, Network(vault.chain), address_at)
    function = planned.function
    needed = PermissionName.PAYMENT_INIT if function is Function.TRANSFER else PermissionName.MANAGE_WORKSPACE
    if not ctx.access.holds_any(frozenset({needed})):
        raise PermissionDenied(f"Your role in this workspace does not carry {needed.value}.")
    call_checks.require_vault_address(db, vault, planned)
    # A block that the index has not read may leave the call without effect, and its fee would be wasted.
    block = require_current(db, contract.chain)
    if contract_id is None:
        raise DeploymentNotConfirmed("The token's deployment has no confirmation, or lost it again.")
    context = call_checks.CallContext(
        contract_id, block, call_checks.waiting_calls(db, contract, vault.workspace_id)
    )
    payload = encode_payload(planned.call(contract_id))
    order = token_order(ctx, TxType.CALL, vault, payload, request.priority, vault_at="/wallet_id")

    def fund(quote: Quote) -> Iterable[Funding]:
        call_checks.require_effect(db, vault, contract, planned, context)
        return order.fund(quote)

    return replace(
        order,
        fund=fund,
        rests_on=context,
        recipients=tuple(request.recipients or ()),
        contract_ids=(contract_id,),
        # The specification's table: minting and burning count only for the vault's limit.
        counts_for_role=function not in FOR_VAULT - FOR_ROLE,
        tokens=movement_of(contract, vault, function, planned.amount, planned.address, ctx.now),
    )


@serves_in_parts(wire.RESUBMIT_CONTRACT_CALL, first=In.WRITE)
def resubmit_contract_call(ctx: Ctx, request: wire.ResubmitCallRequest) -> Steps[wire.ResubmitCallResponse]:
    """Broadcasts the stored final transaction of a stalled call again (P15), and waits a little for its
    status. Idempotent. Raises NotFound, CallNotStalled.
    """
    call, family = _call_and_family(ctx, request.call_uid)
    if family.status is not wire.CallStatus.STALLED:
        raise CallNotStalled(f"The call is {family.status}: only a stalled one is sent again.")
    txid, status = family.best.txid_expected, wire.CallStatus(family.status)
    enqueue(ctx.db, BROADCAST, family.best.id, ctx.now)
    ctx.event(RESUBMITTED, call=call.uid, proposal=family.best.id, txid=txid)
    for _ in ctx.tools.changes.looks(ctx.services.broadcast_wait_seconds):
        ctx = yield In.SNAPSHOT
        status = _call_and_family(ctx, request.call_uid)[1].status
        if status is not wire.CallStatus.STALLED:
            break
        yield In.NOTHING
    return wire.ResubmitCallResponse(txid=txid, status=status)


def _call_and_family(ctx: Ctx, uid: int) -> tuple[ContractCallRow, TokenFamily]:
    """Raises NotFound."""
    call = ctx.find(ContractCallRow, uid, "call")
    return call, token_families(ctx.db, ctx.access.chain, [call.family_id])[call.family_id]
