"""Creating a token: its bytecode, checked field by field, its record, and the proposal of its deployment."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas.asset_tokens import CREATE_TOKEN, CreateTokenRequest, CreateTokenResponse
from custody.schemas.proposals import TxType
from custody.server.calls import Ctx, Steps, serves_in_parts
from custody.server.errors import Invalid
from custody.server.proposals.bounds import vault_to_spend
from custody.server.proposals.drafts import Order
from custody.server.proposals.propose import propose
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import WorkspaceAccess
from custody.server.store.models import AddressBookEntryRow, ContractRow, VaultRow
from custody.server.tokens.proposing import token_order
from custody.server.vaults.stored import address_script, vault_in
from multisig import Network, decode_address
from multisig.errors import InvalidToken
from multisig.tokens import MAX_TOKEN_AMOUNT, Bytecode, TokenAmount, encode_payload
from multisig.tokens.payload import check_holder
from multisig.tokens.values import check_decimals, check_icon, check_name, check_supplies, check_ticker

CREATED = Event(
    "TOKEN_CREATED",
    "proposed the token {ticker} of the vault {vault}"
    " // contract {contract}, bytecode {bytecode}, proposal {proposal}, tx {txid}",
    Category.TOKENS,
)


@serves_in_parts(CREATE_TOKEN)
def create_token(ctx: Ctx, request: CreateTokenRequest) -> Steps[CreateTokenResponse]:
    """Raises NotFound (vault), Invalid, TokenCoinMissing, LockedFunds, InsufficientFunds, ChainUnavailable;
    for the fee, RoleLimitExceeded, VaultLimitExceeded and PolicyUnavailable.
    """
    proposed = yield from propose(ctx, partial(deployment, request))
    row, db, bytecode = proposed.row, proposed.ctx.db, proposed.draft.order.rests_on
    assert isinstance(bytecode, Bytecode), "it is what a deployment rests on"
    vault = vault_in(db, proposed.ctx.access, row.vault_id)
    contract = ContractRow(
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
        deploy_family_id=row.family_id,
        created_by=row.created_by,
        created_at=row.created_at,
    )
    proposed.ctx.add(contract)
    digest = contract.bytecode_hash.hex()
    proposed.announce(CREATED, contract=contract.uid, ticker=contract.ticker, bytecode=digest)
    return CreateTokenResponse(psbt_id=row.id, psbt_base64=proposed.base64, contract_uid=contract.uid)


def deployment(request: CreateTokenRequest, ctx: Ctx) -> Order:
    vault = vault_to_spend(ctx.db, ctx.access, request.vault_id)
    # The address book may change.
    bytecode = _bytecode(ctx.db, ctx.access, vault, request)
    payload = encode_payload(bytecode.deployment)
    order = token_order(ctx, TxType.DEPLOY, vault, payload, request.priority, vault_at="/vault_id")
    return replace(order, rests_on=bytecode)


def _bytecode(db: Session, access: WorkspaceAccess, vault: VaultRow, request: CreateTokenRequest) -> Bytecode:
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
