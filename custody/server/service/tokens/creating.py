"""Creating a token: its bytecode, checked field by field, its record, and the proposal of its deployment."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas.asset_tokens import CreateTokenRequest, CreateTokenResponse
from custody.schemas.proposals import TxType
from custody.server.domain.audit import Category
from custody.server.domain.credentials import Caller, WorkspaceAccess
from custody.server.domain.errors import Invalid
from custody.server.domain.fees import STANDARD_PRIORITY
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.backends import Market
from custody.server.service.limits.limits import OutgoingAmount
from custody.server.service.proposals.bounds import vault_to_spend
from custody.server.service.proposals.drafting import Draft
from custody.server.service.requests.changes import Changes, OutdatedDraft
from custody.server.service.stored_vaults import address_script, vault_in
from custody.server.service.tokens.proposing import TokenDrafter, TokenProposal, TokenProposals
from custody.server.service.webhook_events import event_data
from custody.server.store.models import AddressBookEntryRow, ContractRow, ProposalRow, VaultRow
from multisig import Network, decode_address
from multisig.errors import InvalidToken
from multisig.tokens import MAX_TOKEN_AMOUNT, Bytecode, TokenAmount, encode_payload
from multisig.tokens.payload import check_holder
from multisig.tokens.values import check_decimals, check_icon, check_name, check_supplies, check_ticker


@dataclass(frozen=True)
class TokenDraft:
    """A drafted token, not yet stored."""

    bytecode: Bytecode
    draft: Draft


class TokenCreating:
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

    def draft(self, db: Session, access: WorkspaceAccess, request: CreateTokenRequest) -> TokenDraft:
        """Only reads, for a snapshot, so that no writer waits.


        Raises NotFound (vault); Invalid; TokenCoinMissing, LockedFunds, InsufficientFunds; ChainUnavailable.
        """
        vault = vault_to_spend(db, access, request.vault_id)
        bytecode = bytecode_of(db, access, vault, request)
        quote = self._market.quote(vault.chain)
        rate = quote.rates[request.priority or STANDARD_PRIORITY]
        payload = encode_payload(bytecode.deployment)
        draft = self._drafter.draft(db, vault, payload, rate, quote, vault_at="/vault_id")
        return TokenDraft(bytecode, draft)

    def create(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        request: CreateTokenRequest,
        token: TokenDraft,
    ) -> CreateTokenResponse:
        """Stores the token and a proposal that deploys it.

        Raises Outdated where a coin, or an entry of the address book, has changed since the draft; for the
        fee, RoleLimitExceeded, VaultLimitExceeded and PolicyUnavailable.
        """
        vault, draft = vault_in(db, access, request.vault_id), token.draft
        if bytecode_of(db, access, vault, request) != token.bytecode:
            raise OutdatedDraft("The address book has changed meanwhile.")
        movement = OutgoingAmount(draft.selection.fee, self._clock())
        payload = encode_payload(token.bytecode.deployment)
        wanted = TokenProposal(TxType.DEPLOY, payload, movement)
        proposal = self._proposals.store(db, caller, access, vault, draft, wanted)
        contract = _contract(vault, token.bytecode, proposal)
        db.add(contract)
        db.flush()
        self._audit.record(
            db,
            caller,
            Category.TOKENS,
            "TOKEN_CREATED",
            f"contract {contract.uid}, {contract.ticker} of vault {vault.id}, bytecode "
            f"{contract.bytecode_hash.hex()}, proposal {proposal.id}, tx {proposal.txid_expected}",
            access=access,
            told=event_data(proposal),
        )
        self._changes.moved(db, proposal.workspace_id)
        return CreateTokenResponse(psbt_id=proposal.id, psbt_base64=draft.base64, contract_uid=contract.uid)


def _contract(vault: VaultRow, bytecode: Bytecode, proposal: ProposalRow) -> ContractRow:
    return ContractRow(
        workspace_id=vault.workspace_id,
        vault_id=vault.id,
        chain=vault.chain,
        name=bytecode.name,
        ticker=bytecode.ticker,
        icon=bytecode.icon,
        decimals=bytecode.decimals,
        total_supply=int(bytecode.total_supply),
        max_supply=int(bytecode.max_supply),
        whitelist_enabled=bytecode.whitelist_enabled,
        bytecode=bytecode.blob,
        bytecode_hash=bytecode.deployment.bytecode_hash,
        deploy_family_id=proposal.family_id,
        created_by=proposal.created_by,
        created_at=proposal.created_at,
    )


def bytecode_of(
    db: Session, access: WorkspaceAccess, vault: VaultRow, request: CreateTokenRequest
) -> Bytecode:
    """The vault's address is the owner. Raises Invalid, which names the field."""
    if request.network != vault.network:
        raise Invalid.at("/network", f"The vault is on {vault.network}.")
    total, maximum = int(request.total_supply), int(request.max_supply)
    _check("/token_name", lambda: check_name(request.token_name))
    _check("/ticker", lambda: check_ticker(request.ticker))
    _check("/icon", lambda: check_icon(request.icon))
    _check("/decimals_num", lambda: check_decimals(request.decimals_num))
    pointer = "/total_supply" if total > min(maximum, MAX_TOKEN_AMOUNT) else "/max_supply"
    _check(pointer, lambda: check_supplies(total, maximum, request.decimals_num))
    return Bytecode(
        name=request.token_name,
        ticker=request.ticker,
        decimals=request.decimals_num,
        total_supply=TokenAmount(total),
        max_supply=TokenAmount(maximum),
        whitelist_enabled=request.whitelist_enabled,
        icon=request.icon,
        whitelist=_whitelist(db, access, vault, request.white_list_ids or ()),
        owner_script=address_script(vault),
    )


def _whitelist(
    db: Session, access: WorkspaceAccess, vault: VaultRow, uids: Sequence[int]
) -> tuple[bytes, ...]:
    """The scripts of entries of the workspace's address book, sorted as the bytecode has them."""
    query = select(AddressBookEntryRow).where(
        AddressBookEntryRow.workspace_id == access.workspace_id, AddressBookEntryRow.id.in_(set(uids))
    )
    known = {entry.id: entry.address for entry in db.scalars(query)}
    scripts = set()
    for place, uid in enumerate(uids):
        pointer = f"/white_list_ids/{place}"
        if uid not in known:
            raise Invalid.at(pointer, "There is no such entry in this workspace's address book.")
        script = decode_address(known[uid], Network(vault.chain))
        _check(pointer, lambda script=script: check_holder(script))  # type: ignore[misc]
        scripts.add(script)
    return tuple(sorted(scripts))


def _check(pointer: str, rule: Callable[[], None]) -> None:
    try:
        rule()
    except InvalidToken as error:
        raise Invalid.at(pointer, str(error), error.code) from error
