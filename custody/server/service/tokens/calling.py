"""Calling a token's functions: each call is a proposal, and is refused where it would have no effect."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from custody.schemas.asset_tokens import (
    CallContractRequest,
    CallContractResponse,
    CallStatus,
    ContractWhitelistRequest,
    ResubmitCallResponse,
)
from custody.schemas.common import Priority
from custody.schemas.permissions import PermissionName
from custody.schemas.proposals import TxType
from custody.server.domain.audit import Category
from custody.server.domain.credentials import Caller, WorkspaceAccess
from custody.server.domain.errors import CallNotStalled, DeploymentNotConfirmed, PermissionDenied
from custody.server.domain.fees import STANDARD_PRIORITY
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.backends import Market
from custody.server.service.jobs.outbox import BROADCAST, enqueue
from custody.server.service.limits.limits import OutgoingAmount
from custody.server.service.limits.usage import FOR_ROLE, FOR_VAULT, movement_of
from custody.server.service.proposals.bounds import vault_to_spend
from custody.server.service.proposals.drafting import Draft
from custody.server.service.requests.changes import Changes, OutdatedDraft
from custody.server.service.token_status import token_families
from custody.server.service.tokens.arguments import (
    PlannedCall,
    read_call,
    read_listing,
    require_vault_address,
)
from custody.server.service.tokens.index_reading import require_current
from custody.server.service.tokens.proposing import TokenDrafter, TokenProposal, TokenProposals
from custody.server.service.tokens.records import call_in, contract_in
from custody.server.service.tokens.state import deployed_id, require_effect
from custody.server.service.webhook_events import event_data
from custody.server.store.models import ContractCallRow, ContractRow, ProposalRow, VaultRow
from multisig import Network
from multisig.tokens import Function

CallRequest = CallContractRequest | ContractWhitelistRequest


@dataclass(frozen=True)
class Drafted:
    """A drafted call, not yet stored. ``payload`` names its contract on chain."""

    payload: bytes
    draft: Draft


@dataclass(frozen=True)
class _Case:
    vault: VaultRow
    contract: ContractRow
    planned: PlannedCall
    contract_id: str


class Calling:
    def __init__(
        self,
        clock: Clock,
        audit: AuditLog,
        changes: Changes,
        market: Market,
        drafter: TokenDrafter,
        proposals: TokenProposals,
    ) -> None:
        self._clock = clock
        self._audit = audit
        self._changes = changes
        self._market = market
        self._drafter = drafter
        self._proposals = proposals

    def draft(
        self, db: Session, access: WorkspaceAccess, request: CallRequest, listing: Function | None = None
    ) -> Drafted:
        """Only reads, for a snapshot. ``listing``: the function, where the path names it and not the request.


        Raises NotFound (vault, contract), PermissionDenied, Invalid, WrongNetworkAddress;
        DeploymentNotConfirmed, and the rule that the call would break (`refusal`); TokenCoinMissing,
        LockedFunds, InsufficientFunds; ChainUnavailable; IndexBehind.
        """
        case = _case(db, access, request, listing)
        payload = require_effect(db, case.contract, case.contract_id, case.vault, case.planned)
        quote = self._market.quote(case.vault.chain)
        rate = quote.rates[_priority(request)]
        return Drafted(
            payload, self._drafter.draft(db, case.vault, payload, rate, quote, vault_at="/wallet_id")
        )

    def create(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        request: CallRequest,
        drafted: Drafted,
        listing: Function | None = None,
    ) -> CallContractResponse:
        """Stores the call. Its effect is checked again, after the calls that were proposed since the draft.

        Raises as `draft`; Outdated where a coin was spent, or another deployment was confirmed;
        RoleLimitExceeded, VaultLimitExceeded, PolicyUnavailable.
        """
        case = _case(db, access, request, listing)
        if require_effect(db, case.contract, case.contract_id, case.vault, case.planned) != drafted.payload:
            raise OutdatedDraft("The token has another deployment now.")
        wanted = self._wanted(request, case, drafted)
        proposal = self._proposals.store(db, caller, access, case.vault, drafted.draft, wanted)
        call = _call(case, proposal)
        db.add(call)
        db.flush()
        self._audit.record(
            db,
            caller,
            Category.TOKENS,
            "TOKEN_CALLED",
            f"call {call.uid}, {call.function_name} of contract {call.contract_uid} by vault "
            f"{case.vault.id}, proposal {proposal.id}, tx {proposal.txid_expected}",
            access=access,
            told=event_data(proposal),
        )
        self._changes.moved(db, proposal.workspace_id)
        return CallContractResponse(psbt_id=proposal.id, psbt_base64=drafted.draft.base64, call_uid=call.uid)

    def _wanted(self, request: CallRequest, case: _Case, drafted: Drafted) -> TokenProposal:
        planned, now = case.planned, self._clock()
        named = request.recipients if isinstance(request, CallContractRequest) else None
        return TokenProposal(
            TxType.CALL,
            drafted.payload,
            OutgoingAmount(drafted.draft.selection.fee, now),
            movement_of(case.contract, case.vault, planned.function, planned.amount, planned.address, now),
            recipients=tuple(named or ()),
            contract_ids=(case.contract_id,),
            # The specification's table: minting and burning count only for the vault's limit.
            counts_for_role=planned.function not in FOR_VAULT - FOR_ROLE,
        )


def _case(db: Session, access: WorkspaceAccess, request: CallRequest, listing: Function | None) -> _Case:
    vault = vault_to_spend(db, access, request.wallet_id)
    contract = contract_in(db, access, request.contract_uid)
    planned = _planned(request, listing, Network(vault.chain))
    _require_permission(access, planned.function)
    require_vault_address(db, vault, planned)
    # A block that the index has not read may leave the call without effect, and its fee would be wasted.
    require_current(db, contract.chain)
    contract_id = deployed_id(db, contract)
    if contract_id is None:
        raise DeploymentNotConfirmed("The token's deployment has no confirmation, or lost it again.")
    return _Case(vault, contract, planned, contract_id)


def _planned(request: CallRequest, listing: Function | None, network: Network) -> PlannedCall:
    if isinstance(request, CallContractRequest):
        return read_call(request, network)
    assert listing is not None, "the path of a whitelist request names the function"
    return read_listing(request, listing, network)


def _require_permission(access: WorkspaceAccess, function: Function) -> None:
    needed = PermissionName.PAYMENT_INIT if function is Function.TRANSFER else PermissionName.MANAGE_WORKSPACE
    if not access.holds_any(frozenset({needed})):
        raise PermissionDenied(f"Your role in this workspace does not carry {needed.value}.")


def _priority(request: CallRequest) -> Priority:
    return request.priority or STANDARD_PRIORITY


def _call(case: _Case, proposal: ProposalRow) -> ContractCallRow:
    planned = case.planned
    return ContractCallRow(
        contract_uid=case.contract.uid,
        workspace_id=case.vault.workspace_id,
        vault_id=case.vault.id,
        function_name=planned.function.wire_name,
        args=[arg.model_dump() for arg in planned.args],
        amount=planned.amount,
        address_script=planned.address,
        family_id=proposal.family_id,
        created_by=proposal.created_by,
        created_at=proposal.created_at,
    )


class Resubmitting:
    """Broadcasts the stored final transaction of a stalled call again (P15)."""

    def __init__(self, clock: Clock, audit: AuditLog) -> None:
        self._clock = clock
        self._audit = audit

    def resubmit(
        self, db: Session, caller: Caller, access: WorkspaceAccess, call_uid: int
    ) -> ResubmitCallResponse:
        """Idempotent. Raises NotFound, CallNotStalled."""
        call = call_in(db, access, call_uid)
        family = token_families(db, access.chain, [call.family_id])[call.family_id]
        if family.status is not CallStatus.STALLED:
            raise CallNotStalled(f"The call is {family.status}: only a stalled one is sent again.")
        enqueue(db, BROADCAST, family.best.id, self._clock())
        self._audit.record(
            db,
            caller,
            Category.TOKENS,
            "CALL_RESUBMITTED",
            f"call {call.uid}, proposal {family.best.id}, tx {family.best.txid_expected}",
            access=access,
        )
        return ResubmitCallResponse(txid=family.best.txid_expected, status=family.status)

    def status(self, db: Session, access: WorkspaceAccess, call_uid: int) -> CallStatus:
        """The present status. Raises NotFound."""
        call = call_in(db, access, call_uid)
        return token_families(db, access.chain, [call.family_id])[call.family_id].status
