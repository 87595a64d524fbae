"""From a request for a token to its bytecode, checked field by field."""

from collections.abc import Callable, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas.asset_tokens import CreateTokenRequest
from custody.server.domain.caller import WorkspaceAccess
from custody.server.domain.errors import Fault, Invalid
from custody.server.service.stored_vaults import address_script
from custody.server.store.models import AddressBookEntry, Vault
from multisig import Network, decode_address
from multisig.errors import InvalidToken
from multisig.tokens import MAX_TOKEN_AMOUNT, Bytecode, TokenAmount
from multisig.tokens.amounts import check_decimals, check_supplies
from multisig.tokens.names import check_icon, check_name, check_ticker
from multisig.tokens.payload import check_holder


def bytecode_of(db: Session, access: WorkspaceAccess, vault: Vault, request: CreateTokenRequest) -> Bytecode:
    """The vault's address is the owner. Raises Invalid, which names the field; of a supply, the largest there can be."""
    if request.network != vault.network:
        raise _invalid("/network", f"The vault is on {vault.network}.")
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


def _whitelist(db: Session, access: WorkspaceAccess, vault: Vault, uids: Sequence[int]) -> tuple[bytes, ...]:
    """Scripts of entries of the workspace's address book, in the one order that the bytecode has."""
    query = select(AddressBookEntry).where(
        AddressBookEntry.workspace_id == access.workspace_id, AddressBookEntry.id.in_(set(uids))
    )
    known = {entry.id: entry.address for entry in db.scalars(query)}
    scripts = set()
    for place, uid in enumerate(uids):
        pointer = f"/white_list_ids/{place}"
        if uid not in known:
            raise _invalid(pointer, "There is no such entry in this workspace's address book.")
        script = decode_address(known[uid], Network(vault.chain))
        _check(pointer, lambda script=script: check_holder(script))  # type: ignore[misc]
        scripts.add(script)
    return tuple(sorted(scripts))


def _check(pointer: str, rule: Callable[[], None]) -> None:
    try:
        rule()
    except InvalidToken as error:
        raise _invalid(pointer, str(error), error.code) from error


def _invalid(pointer: str, sentence: str, code: str = "invalid") -> Invalid:
    return Invalid(sentence, faults=(Fault(pointer, sentence, code),))
