"""The tokens of a workspace, one with its state, holdings, whitelist and calls, and how one is made.

The states of a token or of a call on it are drawn: each state a box, each step an arrow. The steps follow
from the two tables of states (`domain.lifecycle`, `domain.token_status`); only the places of the boxes are
set here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from custody.common.pages.figures import address
from custody.common.pages.rendering import Live
from custody.common.recipients import typed_address
from custody.common.text import count
from custody.schemas.address_book import WhitelistAddress
from custody.schemas.asset_tokens import (
    CONTRACT,
    CONTRACT_CALLS,
    CONTRACTS,
    CREATE_TOKEN,
    RESUBMIT_CONTRACT_CALL,
    WORKSPACE_CONTRACTS,
    WORKSPACE_WHITELIST,
    CallStatus,
    Contract,
    ContractStatus,
    ResubmitCallResponse,
)
from custody.schemas.vaults import Vault
from custody.server.console.addresses import entries_of
from custody.server.console.context import PageContext
from custody.server.console.rendering import CALL_WORDS, token_units
from custody.server.console.table import Review, Row, form, require_as_shown, shown_mark
from custody.server.console.typed import raw_units, whole
from custody.server.console.vaults import CHAIN_SECONDS, holdings, vault_by_id, vault_name, vaults_to_choose
from custody.server.domain.errors import Invalid
from custody.server.domain.lifecycle import TRANSITIONS
from custody.server.domain.token_status import TABLE, Mined, contract_status
from multisig.tokens import MAX_DECIMALS, Function

# Narrow, so that it can be read on a telephone.
WIDTH, HEIGHT = 380, 300
BOX_WIDTH, BOX_HEIGHT = 150, 44
# The left upper corner of each box.
_PLACES: Mapping[CallStatus, tuple[int, int]] = MappingProxyType(
    {
        CallStatus.PENDING: (5, 8),
        CallStatus.BROADCASTING: (5, 128),
        CallStatus.CONFIRMED: (5, 248),
        CallStatus.STALLED: (225, 8),
        CallStatus.FAILED: (225, 248),
    }
)
# How far an arrow is beside the line between two centres, so that opposite arrows do not overlap.
_BESIDE = 7.0
_MARGIN = 3.0


@dataclass(frozen=True)
class Box:
    words: str
    x: int
    y: int
    is_now: bool


@dataclass(frozen=True)
class Arrow:
    x1: float
    y1: float
    x2: float
    y2: float


@dataclass(frozen=True)
class States:
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    words: str
    width: int = WIDTH
    height: int = HEIGHT


@cache
def steps(*, of_call: bool) -> frozenset[tuple[CallStatus, CallStatus]]:
    """From which state to which. A token's record has no state for what waits for a backend."""

    def shown(status: CallStatus) -> CallStatus:
        return status if of_call else CallStatus(contract_status(status).value)

    found = {
        (shown(TABLE[before, seen]), shown(TABLE[after, read]))
        for (before, _), after in TRANSITIONS.items()
        # A proof of control concerns no token.
        if (after, Mined.UNREAD) in TABLE
        for seen in Mined
        for read in Mined
    }
    return frozenset((before, after) for before, after in found if before is not after)


def draw_states(now: CallStatus, *, of_call: bool) -> States:
    ways = steps(of_call=of_call)
    known = [state for state in CallStatus if any(state in way for way in ways)]
    boxes = tuple(Box(CALL_WORDS[state], *_PLACES[state], state is now) for state in known)
    arrows = tuple(_arrow(before, after) for before, after in sorted(ways))
    return States(boxes, arrows, f"{'A call' if of_call else 'The token'}: {CALL_WORDS[now]}")


def _arrow(before: CallStatus, after: CallStatus) -> Arrow:
    """From edge to edge of the two boxes, a little beside the line of their centres."""
    (x1, y1), (x2, y2) = _middle(before), _middle(after)
    dx, dy = x2 - x1, y2 - y1
    length = (dx**2 + dy**2) ** 0.5
    aside = -dy / length * _BESIDE, dx / length * _BESIDE
    start, end = _edge((dx, dy), aside), _edge((-dx, -dy), aside)
    return Arrow(
        round(x1 + start[0], 1), round(y1 + start[1], 1), round(x2 + end[0], 1), round(y2 + end[1], 1)
    )


def _middle(state: CallStatus) -> tuple[float, float]:
    x, y = _PLACES[state]
    return x + BOX_WIDTH / 2, y + BOX_HEIGHT / 2


def _edge(way: tuple[float, float], aside: tuple[float, float]) -> tuple[float, float]:
    """Where a line ``way`` that begins ``aside`` of a box's centre leaves the box and its margin."""
    halves = (BOX_WIDTH / 2 + _MARGIN, BOX_HEIGHT / 2 + _MARGIN)
    part = min(
        ((half if step > 0 else -half) - off) / step
        for step, off, half in zip(way, aside, halves, strict=True)
        if step
    )
    return aside[0] + way[0] * part, aside[1] + way[1] * part


PAGE = 25
# Whitelisted addresses on the token's page.
FIRST_LISTED = 100
# The permission to make and to call tokens.
MANAGER = "MANAGE_WORKSPACE"
PRIORITIES = ("medium", "low", "high")


def tokens(page: PageContext) -> Response:
    after, vault_id = page.cursor("after"), page.query("vault")
    call, of = (CONTRACTS, {"vault_id": vault_id}) if vault_id else (WORKSPACE_CONTRACTS, {})
    wanted = {"workspace_id": page.workspace.id, "after": after, **of}
    shown, following = page.read_page(call, wanted, limit=PAGE, key="contract_uid")
    vaults = {each: vault_name(page, each) for each in {one.vault_id for one in shown}}
    held, trouble = holdings(page, vault_id) if vault_id else ([], "")
    more = None if following is None else urlencode({"vault": vault_id, "after": following})
    return page.render(
        "tokens/list.html", tokens=shown, vaults=vaults,
        all_vaults=vaults_to_choose(page, vault_id, replaced=True),
        after=after, more=more, vault_id=vault_id, held=held, trouble=trouble,
    )  # fmt: skip


def token_here(page: PageContext) -> Contract:
    """The token of the path. Raises NotFound."""
    return page.read(CONTRACT, workspace_id=page.workspace.id, contract_uid=page.path_param("contract_uid"))


def path_of(page: PageContext, contract_uid: int) -> str:
    return f"{page.workspace.path}/tokens/{contract_uid}"


def token(page: PageContext) -> Response:
    shown = token_here(page)
    return page.render("tokens/token.html", live_standing=_live(page), **_standing(page, shown))


def standing(page: PageContext) -> Response:
    return page.render_part(_live(page), **_standing(page, token_here(page)))


def _live(page: PageContext) -> Live:
    path = f"{path_of(page, page.path_param('contract_uid'))}/standing"
    before = page.cursor("before")
    wanted = path if before is None else f"{path}?before={before}"
    return Live("standing", "tokens/standing.html", wanted, CHAIN_SECONDS)


def _standing(page: PageContext, shown: Contract) -> dict[str, Any]:
    vault = vault_name(page, shown.vault_id)
    held, trouble = holdings(page, vault.id)
    before = page.cursor("before")
    wanted = {"workspace_id": page.workspace.id, "contract_uid": shown.contract_uid, "order": "newest"}
    calls, older = page.read_page(CONTRACT_CALLS, {**wanted, "after": before}, limit=PAGE)
    return {
        "token": shown,
        "base": path_of(page, shown.contract_uid),
        "vault": vault,
        "picture": draw_states(CallStatus(shown.status.value), of_call=False),
        "held": next((one for one in held if one.contract_uid == shown.contract_uid), None),
        "trouble": trouble,
        "whitelist": _whitelist(page, shown),
        "first_listed": FIRST_LISTED,
        "calls": calls,
        "older": older,
        "call_pictures": {
            status: draw_states(status, of_call=True) for status in {call.status for call in calls}
        },
        "before": before,
        "functions": _possible(page, shown),
    }


def _whitelist(page: PageContext, shown: Contract) -> Any:
    """None where the person may not see it, or the token belongs to another workspace."""
    if not page.workspace.may("PAYMENT_INIT", MANAGER):
        return None
    found = page.read(WORKSPACE_WHITELIST, workspace_id=page.workspace.id, contract_uid=shown.contract_uid)
    return found.contracts[0] if found.contracts else None


def _possible(page: PageContext, shown: Contract) -> list[str]:
    """The functions that the person may call and that have an effect in the token's state, as far as a page
    can say: the API checks each call.
    """
    state = shown.state
    if shown.status is not ContractStatus.CONFIRMED or state is None:
        return []
    if not state.started:
        found = [Function.INIT]
    else:
        found = [
            Function.TRANSFER,
            Function.MINT,
            Function.BURN,
            Function.UNPAUSE if state.paused else Function.PAUSE,
            Function.DISABLE_WHITELIST if state.whitelist_on else Function.ENABLE_WHITELIST,
            Function.ADD_TO_WHITELIST,
            Function.REMOVE_FROM_WHITELIST,
            Function.TRANSFER_OWNERSHIP,
        ]
    may = {
        function: page.workspace.may("PAYMENT_INIT" if function is Function.TRANSFER else MANAGER)
        for function in found
    }
    return [function.wire_name for function in found if may[function]]


def new_token(page: PageContext) -> Response:
    chosen = page.form.one("vault_id") or page.query("vault")
    vaults = vaults_to_choose(page, chosen)
    return page.render("tokens/new.html", vaults=vaults, chosen=chosen)


def _typed(page: PageContext, listed: list[WhitelistAddress]) -> dict[str, Any]:
    """What was typed of a token, as the API takes it. Raises Invalid."""
    form, decimals = page.form, whole(page, "decimals_num")
    if decimals > MAX_DECIMALS:
        raise Invalid.at("/decimals_num", f"A token has at most {MAX_DECIMALS} decimals.")
    return {
        "token_name": form.one("token_name"),
        "ticker": form.one("ticker").strip().upper(),
        "icon": form.one("icon"),
        "decimals_num": decimals,
        "total_supply": str(raw_units(form.one("total_supply"), decimals, "total_supply")),
        "max_supply": str(raw_units(form.one("max_supply"), decimals, "max_supply")),
        "whitelist_enabled": form.ticked("whitelist_enabled"),
        "vault_id": form.one("vault_id"),
        "white_list_ids": [entry.uid for entry in listed],
    }


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
    found: dict[int, WhitelistAddress] = {}
    for line in lines:
        address = typed[line]
        entry = by_name.get(line) if address is None else by_address.get(address)
        if entry is None:
            raise Invalid.at("/listed", f"The address book has no {line[:100]}: add it there first.")
        found[entry.uid] = entry
    return list(found.values())


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
        ),
        "Propose the token",
        f"None of this ever changes. {approving(vault)}.",
        pinned=(shown_mark(*_addresses(listed)),),
    )


def _addresses(listed: list[WhitelistAddress]) -> list[str]:
    """What the review pins: an entry of the address book may change before the confirmation."""
    return [entry.address for entry in listed]


def make_token(page: PageContext) -> Response:
    listed = _listed(page)
    require_as_shown(page, *_addresses(listed))
    made = page.act(
        CREATE_TOKEN,
        workspace_id=page.workspace.id,
        network=page.workspace.entry.workspace_info.net,
        priority=priority(page),
        **_typed(page, listed),
    )
    return page.redirect(
        path_of(page, made.contract_uid), "The token is proposed. Its signers approve it on their devices."
    )


def priority(page: PageContext) -> str:
    typed = page.form.one("priority", PRIORITIES[0])
    if typed not in PRIORITIES:
        raise Invalid.at("/priority", "Choose how soon it is to be in a block.")
    return typed


def _after_resubmit(call: ResubmitCallResponse) -> str:
    if call.status is CallStatus.STALLED:
        return "The network did not take it yet. The platform keeps trying."
    return "It is on its way."


_TOKENS = "/w/{workspace_id:int}/tokens"
ROWS = (
    Row("GET", _TOKENS, tokens),
    Row("GET", f"{_TOKENS}/new", new_token),
    Row(
        "POST", f"{_TOKENS}/new", make_token, again=new_token, review=review_token, acts=(CREATE_TOKEN,)
    ),
    Row("GET", f"{_TOKENS}/{{contract_uid:int}}", token),
    Row("GET", f"{_TOKENS}/{{contract_uid:int}}/standing", standing),
    form(
        f"{_TOKENS}/{{contract_uid:int}}/calls/{{call_uid:int}}/resubmit", RESUBMIT_CONTRACT_CALL, token,
        _after_resubmit, to="tokens/{contract_uid}",
    ),
)  # fmt: skip
