"""The tokens of a workspace; one with its state, holdings, whitelist and calls; how one is made, and a call
of its functions: its form, what it does in words, and the proposal that it becomes.
"""

from typing import Any

from markupsafe import Markup
from starlette.responses import Response

from custody.common.pages.figures import address
from custody.common.pages.figures import amount as sats_amount
from custody.common.recipients import typed_address
from custody.common.text import count
from custody.schemas import asset_tokens as wire
from custody.schemas.address_book import WhitelistAddress
from custody.schemas.vaults import Vault, VaultName
from custody.server.console.addresses import entries_of
from custody.server.console.context import PageContext, shaped
from custody.server.console.rendering import FUNCTION_WORDS, token_units
from custody.server.console.reviews import Review, require_as_shown, shown_mark
from custody.server.console.table import Row, form, live, template_view
from custody.server.console.typed import raw_units
from custody.server.console.vaults import CHAIN_SECONDS, holdings, vault_by_id, vault_name, vaults_to_choose
from custody.server.errors import Invalid, NotFound
from custody.server.proposals.lifecycle import HELD
from custody.server.proposals.propose import preview
from custody.server.store.models import ContractRow
from custody.server.tokens.creating import deployment
from custody.server.tokens.status import token_families
from multisig.tokens import MAX_DECIMALS, MAX_TOKEN_AMOUNT, Function

# Whitelisted addresses on the token's page.
FIRST_LISTED = 100
# The permission to make and to call tokens.
MANAGER = "MANAGE_WORKSPACE"


def tokens(page: PageContext) -> Response:
    vault_id = page.query("vault")
    call, of = (wire.CONTRACTS, {"vault_id": vault_id}) if vault_id else (wire.WORKSPACE_CONTRACTS, {})
    shown = page.read_page(call, key="contract_uid", **of)
    vaults = {each: vault_name(page, each) for each in {one.vault_id for one in shown}}
    held, trouble = holdings(page, vault_id) if vault_id else ([], "")
    return page.render(
        "tokens/list.html", tokens=shown, vaults=vaults,
        all_vaults=vaults_to_choose(page, "vault", replaced=True),
        vault_id=vault_id, held=held, trouble=trouble,
    )  # fmt: skip


def token_here(page: PageContext) -> wire.Contract:
    """The token of the path. Raises NotFound."""
    return page.read(wire.CONTRACT, contract_uid=page.path_param("contract_uid"))


def _standing(page: PageContext) -> dict[str, Any]:
    shown = token_here(page)
    vault = vault_name(page, shown.vault_id)
    held, trouble = holdings(page, vault.id)
    return {
        "token": shown,
        "base": f"{page.workspace.path}/tokens/{shown.contract_uid}",
        "vault": vault,
        "held": next((one for one in held if one.contract_uid == shown.contract_uid), None),
        "trouble": trouble,
        "whitelist": _whitelist(page, shown),
        "first_listed": FIRST_LISTED,
        **_deployment(page, shown),
        "calls": page.read_page(
            wire.CONTRACT_CALLS, contract_uid=shown.contract_uid, order="newest", at="before"
        ),
        "functions": _possible(page, shown),
    }


def _deployment(page: PageContext, shown: wire.Contract) -> dict[str, Any]:
    """Its proposal, also before that is sent, and why it failed: of a token of this workspace."""
    known = {"deployment": shown.deploy_psbt_id, "why": None}
    if shown.status is wire.ContractStatus.CONFIRMED:
        return known
    with page.reading() as ctx:
        row = ctx.db.get_one(ContractRow, shown.contract_uid)
        family = token_families(ctx.db, row.chain, [row.deploy_family_id])[row.deploy_family_id]
    if row.workspace_id != page.workspace.id or family.best.screening == HELD:
        return known
    return {"deployment": family.best.id, "why": family.reason}


def _whitelist(page: PageContext, shown: wire.Contract) -> Any:
    """None where the person may not see it, or the token belongs to another workspace."""
    if not page.workspace.may("PAYMENT_INIT", MANAGER):
        return None
    listed = page.read(wire.WORKSPACE_WHITELIST, contract_uid=shown.contract_uid)
    return listed.contracts[0] if listed.contracts else None


def _possible(page: PageContext, shown: wire.Contract) -> list[str]:
    """The functions that the person may call and that have an effect in the token's state, as far as a page
    can say: the API checks each call.
    """
    state = shown.state
    if shown.status is not wire.ContractStatus.CONFIRMED or state is None:
        return []
    without_effect = {
        Function.INIT,
        Function.PAUSE if state.paused else Function.UNPAUSE,
        Function.ENABLE_WHITELIST if state.whitelist_on else Function.DISABLE_WHITELIST,
    }
    functions = FUNCTION_WORDS.keys() - without_effect if state.started else {Function.INIT}
    return [
        function.wire_name
        for function in FUNCTION_WORDS
        if function in functions
        and page.workspace.may("PAYMENT_INIT" if function is Function.TRANSFER else MANAGER)
    ]


new_token = template_view("tokens/new.html", vaults=lambda page: vaults_to_choose(page, "vault_id"))


def _typed(page: PageContext, listed: list[WhitelistAddress]) -> dict[str, Any]:
    """What was typed of a token, as the API takes it. Raises Invalid."""
    form, decimals = page.form, page.number("decimals_num")
    if decimals > MAX_DECIMALS:
        raise Invalid.at("/decimals_num", f"A token has at most {MAX_DECIMALS} decimals.")
    return page.typed(
        wire.CREATE_TOKEN,
        network=page.workspace.entry.workspace_info.net,
        vault_id=form.one("vault_id"),
        token_name=form.one("token_name"),
        icon=form.one("icon"),
        ticker=form.one("ticker").strip().upper(),
        total_supply=str(raw_units(form.one("total_supply"), decimals, "total_supply")),
        max_supply=str(raw_units(form.one("max_supply"), decimals, "max_supply")),
        white_list_ids=[entry.uid for entry in listed],
    )


def _listed(page: PageContext) -> list[WhitelistAddress]:
    """The whitelist from the start: a name or an address of the address book in each line. An address is
    never looked up as a name. Raises Invalid.
    """
    lines = [line.strip() for line in page.form.one("listed").splitlines() if line.strip()]
    if not lines:
        return []
    typed = {line: typed_address(line) for line in lines}
    names = [line for line, address in typed.items() if address is None]
    by_name = {entry.name: entry for entry in entries_of(page, "names", names)}
    addresses = [address for address in typed.values() if address is not None]
    by_address = {entry.address: entry for entry in entries_of(page, "addresses", addresses)}
    entries: dict[int, WhitelistAddress] = {}
    for line in lines:
        address = typed[line]
        entry = by_name.get(line) if address is None else by_address.get(address)
        if entry is None:
            raise Invalid.at("/listed", f"The address book has no {line[:100]}: add it there first.")
        entries[entry.uid] = entry
    return list(entries.values())


def approving(vault: Vault) -> str:
    """Who has to approve, as the beginning of a sentence."""
    one, many = (
        f"signer of {vault.name} approves it on a device",
        f"signers of {vault.name} approve it on their devices",
    )
    return count(vault.m, one, many)


def review_token(page: PageContext) -> Review:
    listed = _listed(page)
    typed = _typed(page, listed)
    vault = vault_by_id(page, typed["vault_id"])
    request = shaped(wire.CreateTokenRequest, **typed)
    with page.reading() as ctx:
        entered = ctx.enter(wire.CREATE_TOKEN, page.workspace.id)
        shown = preview(entered, deployment(request, entered))
    first, most = (
        token_units(typed[name], typed["decimals_num"]) if int(typed[name]) < 2**63 else "too much"
        for name in ("total_supply", "max_supply")
    )
    return Review(
        f"Make {typed['ticker']}",
        (
            ("Name", typed["token_name"]),
            ("At first", f"{first} {typed['ticker']} tokens, once it is started"),
            ("Never more than", f"{most} {typed['ticker']} tokens"),
            ("Owner", f"the vault {vault.name}, by its address"),
            ("Its address", address(vault.address)),
            ("Who may receive it", "listed addresses alone" if typed["whitelist_enabled"] else "any address"),
            *((f"Listed from the start: {entry.name}", address(entry.address)) for entry in listed),
            ("Icon", typed["icon"] or "none"),
            ("Network fee", sats_amount(shown.fee_sats)),
            ("Rate", f"{shown.fee_rate} sat/vB"),
        ),
        "Propose the token",
        f"None of this ever changes. {approving(vault)}.",
        pinned=(shown_mark(*_addresses(listed)),),
    )


def _addresses(listed: list[WhitelistAddress]) -> list[str]:
    """What the review pins: an entry of the address book may change before the confirmation."""
    return [entry.address for entry in listed]


def _confirmed(page: PageContext) -> dict[str, Any]:
    listed = _listed(page)
    require_as_shown(page, *_addresses(listed))
    return _typed(page, listed)


def _after_resubmit(call: wire.ResubmitCallResponse) -> str:
    if call.status is wire.CallStatus.STALLED:
        return "The network did not take it yet. The platform keeps trying."
    return "It is on its way."


# --- a call -------------------------------------------------------------------------------------------------

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


def _function(page: PageContext) -> Function:
    """Raises NotFound for an unknown name."""
    for function in Function:
        if function.wire_name == page.path_param("function"):
            return function
    raise NotFound("A token has no such function.")


def _callers(page: PageContext) -> list[VaultName]:
    """The vaults that may call it, the owner first: any holder transfers, the owner alone does the rest."""
    own = vault_name(page, token_here(page).vault_id)
    if _function(page) is not Function.TRANSFER:
        return [own]
    others = vaults_to_choose(page, "wallet_id", replaced=True)
    return [own, *(each for each in others if each.id != own.id)]


call_page = template_view(
    "tokens/call.html", token=token_here, function=_function, vaults=_callers,
    warning=lambda page: _WARNINGS.get(_function(page), ""),
)  # fmt: skip


def _typed_call(page: PageContext, token: wire.Contract) -> tuple[str, int | None]:
    """Its address and its amount in raw units; empty and None where it takes none. Raises Invalid."""
    function, form = _function(page), page.form
    raw = None
    if function.takes_amount:
        raw = raw_units(form.one("amount"), token.decimals, "amount")
        if not 0 < raw <= MAX_TOKEN_AMOUNT:
            raise Invalid.at("/amount", "A token cannot have this amount.")
    if not function.takes_address:
        return "", raw
    # The owner can burn its own tokens only.
    is_own = function is Function.BURN
    named = vault_by_id(page, token.vault_id).address if is_own else form.one("address").strip()
    if not named:
        raise Invalid.at("/address", "Name the address.")
    return named, raw


def review_call(page: PageContext) -> Review:
    token = token_here(page)
    function, (named, raw) = _function(page), _typed_call(page, token)
    vault = vault_by_id(page, page.form.one("wallet_id"))
    shown = page.read(wire.PREVIEW_CALL, **_call_body(page))
    amount = "" if raw is None else f"{token_units(raw, token.decimals)} {token.symbol} tokens"
    supply = f"{token_units(token.total_supply, token.decimals)} {token.symbol} tokens"
    sentence = _SENTENCES[function].format(amount=amount, address=address(named), supply=supply)
    return Review(
        f"{FUNCTION_WORDS[function]}: {token.symbol}",
        (
            ("What it does", sentence),
            ("Token", f"{token.name}, {token.symbol}"),
            ("Called by", f"the vault {vault.name}"),
            *((("Raw units", str(raw)),) if raw is not None else ()),
            ("Network fee", sats_amount(shown.fee_sats)),
            ("Rate", f"{shown.fee_rate} sat/vB"),
        ),
        "Propose it",
        f"{_WARNINGS.get(function, '')} {approving(vault)}.".lstrip(),
    )


def _call_body(page: PageContext) -> dict[str, Any]:
    token = token_here(page)
    named, raw = _typed_call(page, token)
    args = (("str", named or None), ("int", raw))
    return {
        "contract_uid": token.contract_uid,
        "wallet_id": page.form.one("wallet_id"),
        "function_name": _function(page).wire_name,
        "args": [{"type": kind, "value": value} for kind, value in args if value is not None],
        "priority": page.form.one("priority") or None,
    }


_TOKENS = "/w/{workspace_id:int}/tokens"
_TOKEN = f"{_TOKENS}/{{contract_uid:int}}"
_CALL = f"{_TOKEN}/call/{{function}}"
_LIVE = live(
    _TOKEN, f"{_TOKEN}/standing", ("tokens/token.html", "tokens/standing.html"), _standing,
    seconds=CHAIN_SECONDS,
)  # fmt: skip
ROWS = (
    Row("GET", _TOKENS, tokens),
    form(
        f"{_TOKENS}/new", wire.CREATE_TOKEN, new_token,
        "The token is proposed. Its signers approve it on their devices.", to="tokens/{0.contract_uid}",
        review=review_token, given=_confirmed, has_page=True,
    ),
    *_LIVE,
    form(
        f"{_TOKEN}/calls/{{call_uid:int}}/resubmit", wire.RESUBMIT_CONTRACT_CALL, _LIVE[0].view,
        _after_resubmit, to="tokens/{contract_uid}",
    ),
    form(
        _CALL, wire.CALL_CONTRACT, call_page, "It is proposed. Its signers approve it on their devices.",
        to="proposals/{0.psbt_id}", review=review_call, given=_call_body, has_page=True,
    ),
)  # fmt: skip
