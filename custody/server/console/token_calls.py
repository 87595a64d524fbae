"""One call of a token's function: its form, what it does in words, and the proposal that it becomes."""

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from starlette.responses import Response

from custody.common.pages.figures import address
from custody.common.pages.figures import amount as sats_amount
from custody.schemas.asset_tokens import CALL_CONTRACT, PREVIEW_CALL, Contract
from custody.schemas.vaults import VaultName
from custody.server.console.context import PageContext
from custody.server.console.rendering import FUNCTION_WORDS, token_units
from custody.server.console.table import Review, Row, form
from custody.server.console.tokens import approving, priority, token_here
from custody.server.console.typed import raw_units
from custody.server.console.vaults import vault_by_id, vault_name, vaults_to_choose
from custody.server.errors import Invalid, NotFound
from multisig.tokens import MAX_TOKEN_AMOUNT, Function

# What each does, shown before it is proposed; {amount} and {address} are what was typed.
_SENTENCES = {
    Function.INIT: Markup("Start the token: {supply} are minted to its owner."),
    Function.TRANSFER: Markup("Send {amount} of the vault's to {address}."),
    Function.MINT: Markup("Mint {amount} to {address}."),
    Function.BURN: Markup("Burn {amount} of the owner's own."),
    Function.PAUSE: Markup("Stop all transfers until it is unpaused."),
    Function.UNPAUSE: Markup("Allow transfers again."),
    Function.TRANSFER_OWNERSHIP: Markup("Make {address} the token's owner."),
    Function.ENABLE_WHITELIST: Markup("Let listed addresses alone receive it."),
    Function.DISABLE_WHITELIST: Markup("Let any address receive it."),
    Function.ADD_TO_WHITELIST: Markup("Let {address} receive it while the whitelist is on."),
    Function.REMOVE_FROM_WHITELIST: Markup(
        "Stop {address} from receiving it while the whitelist is on; what it holds stays."
    ),
}
_WARNINGS = {
    Function.TRANSFER_OWNERSHIP: "Only the new owner could ever give it back. At an address without a known "
    "key it can never be minted, burned or stopped again.",
    Function.BURN: "What is burned is gone for good.",
    Function.PAUSE: "No holder can move the token meanwhile.",
}


@dataclass(frozen=True)
class TypedCall:
    """A call as it was typed. ``args``: as the API takes them."""

    function: Function
    address: str
    raw: int | None
    args: list[dict[str, Any]]


def _function(page: PageContext) -> Function:
    """Raises NotFound for an unknown name."""
    for function in Function:
        if function.wire_name == page.path_param("function"):
            return function
    raise NotFound("A token has no such function.")


def call_page(page: PageContext) -> Response:
    token, function = token_here(page), _function(page)
    chosen = page.form.one("wallet_id") or page.query("vault")
    return page.render(
        "tokens/call.html",
        token=token,
        function=function,
        title=FUNCTION_WORDS[function],
        vaults=_callers(page, token, function, chosen),
        chosen=chosen,
        takes_address=function.takes_address and function is not Function.BURN,
        warning=_WARNINGS.get(function, ""),
    )


def _callers(page: PageContext, token: Contract, function: Function, chosen: str) -> list[VaultName]:
    """The vaults that may call it, the owner first: any holder transfers, the owner alone does the rest."""
    own = vault_name(page, token.vault_id)
    if function is not Function.TRANSFER:
        return [own]
    others = vaults_to_choose(page, chosen, replaced=True)
    return [own, *(each for each in others if each.id != own.id)]


def _typed(page: PageContext, token: Contract) -> TypedCall:
    """Raises Invalid."""
    function, form = _function(page), page.form
    raw = None
    if function.takes_amount:
        raw = raw_units(form.one("amount"), token.decimals, "amount")
        if not 0 < raw <= MAX_TOKEN_AMOUNT:
            raise Invalid.at("/amount", "A token cannot have this amount.")
    named = form.one("address").strip()
    if function is Function.BURN:
        # The owner can burn its own tokens only.
        named = vault_by_id(page, token.vault_id).address
    if function.takes_address and not named:
        raise Invalid.at("/address", "Name the address.")
    args: list[dict[str, Any]] = []
    if function.takes_address:
        args.append({"type": "str", "value": named})
    if raw is not None:
        args.append({"type": "int", "value": raw})
    return TypedCall(function, named, raw, args)


def review_call(page: PageContext) -> Review:
    token = token_here(page)
    typed = _typed(page, token)
    vault = vault_by_id(page, page.form.one("wallet_id"))
    shown = page.read(PREVIEW_CALL, **_body(page))
    amount = "" if typed.raw is None else f"{token_units(typed.raw, token.decimals)} {token.symbol} tokens"
    supply = f"{token_units(token.total_supply, token.decimals)} {token.symbol} tokens"
    sentence = _SENTENCES[typed.function].format(amount=amount, address=address(typed.address), supply=supply)
    return Review(
        f"{FUNCTION_WORDS[typed.function]}: {token.symbol}",
        (
            ("What it does", sentence),
            ("Token", f"{token.name}, {token.symbol}"),
            ("Called by", f"the vault {vault.name}"),
            *((("Raw units", str(typed.raw)),) if typed.raw is not None else ()),
            ("Network fee", sats_amount(shown.fee_sats)),
        ),
        "Propose it",
        f"{_WARNINGS.get(typed.function, '')} {approving(vault)}.".lstrip(),
    )


def _body(page: PageContext) -> dict[str, Any]:
    token = token_here(page)
    typed = _typed(page, token)
    return {
        "workspace_id": page.workspace.id,
        "contract_uid": token.contract_uid,
        "wallet_id": page.form.one("wallet_id"),
        "function_name": typed.function.wire_name,
        "args": typed.args,
        "priority": priority(page),
    }


_CALL = "/w/{workspace_id:int}/tokens/{contract_uid:int}/call/{function}"
ROWS = (
    Row("GET", _CALL, call_page),
    form(
        _CALL, CALL_CONTRACT, call_page, "It is proposed. Its signers approve it on their devices.",
        to="proposals/{0.psbt_id}", review=review_call, given=_body,
    ),
)  # fmt: skip
