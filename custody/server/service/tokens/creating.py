"""Making a token: its record, and the proposal of its deployment."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from custody.schemas.asset_tokens import CreateTokenRequest, CreateTokenResponse
from custody.schemas.proposals import TxType
from custody.server.domain.audit import Category
from custody.server.domain.caller import Caller, WorkspaceAccess
from custody.server.domain.fees import STANDARD_PRIORITY
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.backends import Market
from custody.server.service.limits.limits import Movement
from custody.server.service.proposals.drafting import Draft
from custody.server.service.requests.changes import Changes
from custody.server.service.requests.outdated import Outdated
from custody.server.service.stored_vaults import vault_in
from custody.server.service.tokens.blueprints import bytecode_of
from custody.server.service.tokens.paying import TokenDrafter
from custody.server.service.tokens.storing import TokenProposals, Wanted
from custody.server.service.webhook_events import told_of
from custody.server.store.models import Contract, Proposal, Vault
from multisig.tokens import Bytecode, encode_payload


@dataclass(frozen=True)
class Blueprint:
    """A token that was drafted and not yet stored."""

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

    def draft(self, db: Session, access: WorkspaceAccess, request: CreateTokenRequest) -> Blueprint:
        """It only reads: for a snapshot, so that no writer waits for it.

        Raises NotFound (vault); Invalid; TokenCoinMissing, LockedFunds, InsufficientFunds; ChainUnavailable.
        """
        vault = vault_in(db, access, request.vault_id)
        bytecode = bytecode_of(db, access, vault, request)
        quote = self._market.quote(vault.chain)
        rate = quote.rates[request.priority or STANDARD_PRIORITY]
        payload = encode_payload(bytecode.deployment)
        draft = self._drafter.draft(db, vault, payload, rate, quote, vault_at="/vault_id")
        return Blueprint(bytecode, draft)

    def create(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        request: CreateTokenRequest,
        blueprint: Blueprint,
    ) -> CreateTokenResponse:
        """The token, and a proposal that deploys it. Nothing reaches the network before its signers approve.

        Raises Outdated where a coin, or an entry of the address book, changed meanwhile; RoleLimitExceeded, VaultLimitExceeded
        and PolicyUnavailable, for the miner's fee.
        """
        vault, draft = vault_in(db, access, request.vault_id), blueprint.draft
        if bytecode_of(db, access, vault, request) != blueprint.bytecode:
            raise Outdated("The address book has changed meanwhile.")
        movement = Movement(draft.selection.fee, self._clock())
        payload = encode_payload(blueprint.bytecode.deployment)
        wanted = Wanted(TxType.DEPLOY, payload, movement)
        proposal = self._proposals.store(db, caller, access, vault, draft, wanted)
        contract = _contract(vault, blueprint.bytecode, proposal)
        db.add(contract)
        db.flush()
        self._audit.record(
            db,
            caller,
            Category.TOKENS,
            "TOKEN_CREATED",
            f"contract {contract.uid}, {contract.ticker} of vault {vault.id}, bytecode {contract.bytecode_hash.hex()}, "
            f"proposal {proposal.id}, tx {proposal.txid_expected}",
            access=access,
            told=told_of(proposal),
        )
        self._changes.moved(db, proposal.workspace_id)
        return CreateTokenResponse(psbt_id=proposal.id, psbt_base64=draft.base64, contract_uid=contract.uid)


def _contract(vault: Vault, bytecode: Bytecode, proposal: Proposal) -> Contract:
    return Contract(
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
