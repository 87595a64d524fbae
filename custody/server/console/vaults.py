"""The vaults of a workspace; one of them, its addresses, its movements and coins as pages and as CSV files;
and how one is made.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import chain
from typing import Any
from urllib.parse import urlencode

from markupsafe import escape
from starlette.responses import Response

from custody.common.pages.figures import address, amount
from custody.common.pages.serving import attachment
from custody.common.spreadsheets import COIN_COLUMNS, MOVEMENT_COLUMNS, Columns, statement_lines
from custody.common.text import SHORT_ID, count, minute, plain
from custody.schemas import history
from custody.schemas import vaults as wire
from custody.schemas.asset_tokens import TOKENS, TokenBalance
from custody.schemas.call import Answer, Call, Item
from custody.schemas.common import Unreadable
from custody.schemas.users import MEMBERS
from custody.server.console.context import PAGE, PageContext
from custody.server.console.limits import vault_limit
from custody.server.console.rendering import csv_file
from custody.server.console.reviews import Facts
from custody.server.console.table import Row, form, live, template_view
from custody.server.console.typed import day_of, query_sats
from custody.server.errors import Invalid, StateConflict
from custody.server.store.models import VaultRow
from custody.server.vaults.calls import quorum_warnings
from custody.server.vaults.stored import replacement_of
from multisig import Sats, format_btc

# In a list to choose from. Each vault's own page links to its actions, too.
MAX_CHOICES = 100
# How often a page polls for changes on the chain: a deposit moves no proposal, so no event announces it.
CHAIN_SECONDS = 15
# Movements on the vault's own page.
NEWEST = 5
# What the API asks for to show holdings and exports: PAYMENT_INIT alone is not enough.
VIEWERS = ("VIEW_BALANCES", "PAYMENT_APPROVE", "MANAGE_WORKSPACE")
# Rows per call for a file: the API's most.
FILE_PAGE = 500
_TEXTS = ("kind", "status", "state", "label", "address", "txid", "with_replaced", "month")
# Of each list its call, its name in the answer, and its filters.
_MOVEMENTS = history.VAULT_HISTORY, "movements", (
    "kind", "status", "label", "address", "txid", "with_replaced", "since", "before", "least", "most",
)  # fmt: skip
_COINS = history.VAULT_COINS, "coins", ("state", "address", "least", "most")


vaults = template_view(
    "vaults/list.html",
    vaults=lambda page: page.read_page(wire.LIST_WALLETS, name=page.query("name").strip() or None, key="id"),
)


def vault_here(page: PageContext) -> wire.Vault:
    """The vault of the path. Raises NotFound."""
    return vault_by_id(page, page.path_param("vault_id"))


def vault_by_id(page: PageContext, vault_id: str) -> wire.Vault:
    """Raises NotFound."""
    return _found(page, wire.LIST_WALLETS, vault_id)


def vault_name(page: PageContext, vault_id: str) -> wire.VaultName:
    """Raises NotFound."""
    return _found(page, wire.VAULT_NAMES, vault_id)


def _found(page: PageContext, call: Call[Any, list[Item | Unreadable]], vault_id: str) -> Item:
    for each in page.read(call, vault_id=vault_id):
        return each
    raise page.missing("There is no such vault in this workspace.")


def replacement_name(page: PageContext, shown: wire.Vault) -> wire.VaultName | None:
    """The vault in its place now: the last one where a replacement was replaced again. Raises NotFound."""
    with page.reading() as ctx:
        last = replacement_of(ctx.db, ctx.db.get_one(VaultRow, shown.id))
    return None if last is None else vault_name(page, last.id)


def vaults_to_choose(page: PageContext, field: str, *, replaced: bool = False) -> list[wire.VaultName]:
    """The first MAX_CHOICES, and the one in the form's field, or to which a vault's own page linked.
    ``replaced``: those that pay nothing new, too. Raises NotFound.
    """
    chosen = page.form.one(field) or page.query("vault")
    names = page.read(wire.VAULT_NAMES, limit=MAX_CHOICES)
    names = [each for each in names if replaced or each.replaced_by is None]
    if chosen and chosen not in {each.id for each in names}:
        return [vault_name(page, chosen), *names]
    return names


def _export(page: PageContext) -> dict[str, Any]:
    if not page.workspace.may(*VIEWERS):
        return {"export": None}
    return {"export": page.read(wire.VAULT_EXPORT, vault_id=page.path_param("vault_id"), format="bsms")}


def _standing(page: PageContext) -> dict[str, Any]:
    shown = vault_here(page)
    controls = page.read(wire.VAULT_CONTROLS, vault_id=shown.id)
    held, trouble = holdings(page, shown.id)
    return {
        "vault": shown,
        "controls": controls,
        "people": names_of(page, shown),
        "movements": page.read(history.VAULT_HISTORY, vault_id=shown.id, limit=NEWEST).movements,
        "held": held,
        "trouble": trouble,
    }


def holdings(page: PageContext, vault_id: str) -> tuple[list[TokenBalance], str]:
    """The tokens that a vault holds, and why where these are unknown."""
    if not page.workspace.may(*VIEWERS):
        return [], ""
    held, trouble = page.tried(lambda: page.read(TOKENS, vault_id=vault_id))
    return held or [], trouble


def names_of(page: PageContext, shown: wire.Vault) -> dict[str, str]:
    """The signers' names, by user id."""
    return {each.user_id: page.person(each.user_id, each.name) for each in shown.signers}


def exported(page: PageContext) -> Response:
    """The vault for other wallets, as a file of the path's form."""
    form_name = page.request.url.path.rpartition("/")[2]
    export = page.read(wire.VAULT_EXPORT, vault_id=page.path_param("vault_id"), format=form_name)
    headers = attachment(f"vault-{export.vault_id[:8]}.{form_name}")
    return Response(export.text, headers=headers, media_type="text/plain; charset=utf-8")


def receive(page: PageContext) -> Response:
    """A fresh address, with an amount where one was asked for (BIP-321). A vault that is replaced offers
    none.
    """
    shown, sats = vault_here(page), None
    new = replacement_name(page, shown)
    try:
        sats = query_sats(page, "amount")
    except Invalid as error:
        page.problem = error
    link = f"bitcoin:{shown.receive_address}"
    if sats:
        link += f"?amount={format_btc(Sats(sats))}"
    return page.render(
        "vaults/receive.html", vault=shown, link=link, sats=sats,
        amount=page.query("amount"), new=new,
    )  # fmt: skip


# Refused where the person may not see the members.
new_vault = template_view("vaults/new.html", members=MEMBERS)


def typed_policy(page: PageContext) -> dict[str, Any]:
    """Who signs, and how many of them. Raises Invalid."""
    members = {str(each.uuid): each.uuid for each in page.read(MEMBERS)}
    m, chosen = page.number("m"), dict.fromkeys(page.form.every("signers"))
    if not chosen.keys() <= members.keys():
        raise Invalid.at("/signers", "Choose the signers among the members of the workspace.")
    if not chosen:
        raise Invalid.at("/signers", "Choose the signers.")
    if not 1 <= m <= len(chosen):
        words = f"{m} signatures cannot be asked of {count(len(chosen), 'signer', 'signers')}."
        raise Invalid.at("/m", words)
    return {"m": m, "signers": [members[each] for each in chosen]}


def _typed(page: PageContext) -> dict[str, Any]:
    net = page.workspace.entry.workspace_info.net
    return {"network": net, **typed_policy(page), **vault_limit(page)}


FOR_GOOD = (
    "Policy, signers and name never change. Each signer compares the vault's code with the others and pins "
    "it before anyone pays to it."
)


def _warned(page: PageContext) -> str:
    policy = typed_policy(page)
    return " ".join((*quorum_warnings(policy["m"], len(policy["signers"])), FOR_GOOD))


def _wanted(page: PageContext, names: Sequence[str]) -> dict[str, Any]:
    """The filters that were given, as the API takes them. Raises Invalid."""
    filters: dict[str, Any] = {name: page.query(name).strip() for name in names if name in _TEXTS}
    if "least" in names:
        filters |= {"min_sats": query_sats(page, "least"), "max_sats": query_sats(page, "most")}
    if "since" in names:
        filters["from_time"] = day_of(page.query("since"), "since")
        filters["to_time"] = day_of(page.query("before"), "before")
    return {name: value for name, value in filters.items() if value != ""}


def _page(page: PageContext, call: Call[Any, Any], name: str, filters: Sequence[str]) -> Response:
    """A page of the list ``name``; where a filter cannot be read, an empty one that says what is wrong."""
    shown, cursor = vault_here(page), page.query("cursor")
    listed = None
    try:
        listed = page.read(
            call, vault_id=shown.id, **_wanted(page, filters), cursor=cursor or None, limit=PAGE
        )
    except Invalid as error:
        page.problem = error
    typed = urlencode([(name, value) for name in filters if (value := page.query(name))])
    return page.render(f"vaults/{name}.html", vault=shown, found=listed, filters=typed, cursor=cursor)


def _file(
    page: PageContext, call: Call[Any, Any], name: str, filters: Sequence[str], columns: Columns, **more: Any
) -> Response:
    """Everything that the filters match."""
    pages = _pages(page, call, filters, **more)
    file = f"{name}-{page.path_param('vault_id')[:8]}"
    return csv_file(file, columns, (getattr(each, name) for each in pages))


def _until(page: PageContext) -> dict[str, Any]:
    """A day ends at its last second in UTC."""
    day = day_of(page.form.one("until"), "until")
    return {"until": day and day + timedelta(days=1, seconds=-1)}


def _coin(page: PageContext) -> history.VaultCoin | None:
    """Which one is meant; None where none is, or the vault does not hold it."""
    coin = page.form.one("coin") or page.query("coin")
    if not coin:
        return None
    coins = page.read(history.VAULT_COINS, vault_id=page.path_param("vault_id"), coin=coin).coins
    return coins[0] if coins else None


aside_page = template_view("vaults/aside.html", vault=vault_here, coin=_coin)


def _of_coin(page: PageContext) -> Facts:
    one = _coin(page)
    if one is None:
        return ()
    facts: list[tuple[str, object]] = [("Amount", amount(one.amount_sats)), ("Address", address(one.address))]
    if one.psbt_id is not None:
        facts.append(("Locked by", f"proposal {one.psbt_id[:SHORT_ID]}, which goes on and spends it"))
    if (aside := one.set_aside) is not None:
        end = "" if aside.until is None else f", until {minute(aside.until)}"
        by = "" if aside.set_by_name is None else f", by {aside.set_by_name}"
        facts.append(("Set aside now", escape(plain(f"{aside.reason}{end}{by}"))))
    return facts


def statement(page: PageContext) -> Response:
    """A month as a page to print; the last one that is over where none is asked for."""
    shown, found, cursor, waits = vault_here(page), None, page.query("cursor"), ""
    last = page.services.tools.clock().replace(day=1) - timedelta(days=1)
    month = page.query("month", f"{last:%Y-%m}")
    try:
        where = {"vault_id": shown.id, "cursor": cursor or None, "limit": FILE_PAGE}
        found = page.read(history.VAULT_STATEMENT, month=month, **where)
    except (Invalid, StateConflict) as error:
        waits = error.detail
        page.problem = error if page.query("month") else None
    return page.render(
        "vaults/statement.html", vault=shown, found=found, month=month, cursor=cursor, waits=waits,
        now=page.services.tools.clock(), **(_export(page) if found else {}),
    )  # fmt: skip


def statement_file(page: PageContext) -> Response:
    pages = _pages(page, history.VAULT_STATEMENT, ("month",))
    first = next(pages)
    movements = chain(first.movements, (one for each in pages for one in each.movements))
    name = f"statement-{first.vault_id[:8]}-{first.month}"
    return csv_file(name, MOVEMENT_COLUMNS, iter([statement_lines(first, movements)]))


def _pages(
    page: PageContext, call: Call[Any, Answer], filters: Sequence[str], **more: Any
) -> Iterator[Answer]:
    """Read as they are sent: one at a time is in memory."""
    wanted, cursor = {**_wanted(page, filters), **more, "limit": FILE_PAGE}, None
    while True:
        listed: Any = page.read(call, vault_id=page.path_param("vault_id"), **wanted, cursor=cursor)
        yield listed
        cursor = listed.next_cursor
        if cursor is None:
            return


_VAULTS = "/w/{workspace_id:int}/vaults"
_VAULT = _VAULTS + "/{vault_id}"
ROWS = (
    Row("GET", _VAULTS, vaults),
    form(
        f"{_VAULTS}/new", wire.CREATE_WALLET, new_vault,
        "The vault is made.", to="vaults/{0.id}", given=_typed, asks="Make the vault", warns=_warned,
        has_page=True,
    ),
    *live(
        _VAULT, f"{_VAULT}/standing", ("vaults/vault.html", "vaults/standing.html"), _standing,
        around=_export, seconds=CHAIN_SECONDS,
    ),
    Row("GET", f"{_VAULT}/receive", receive),
    Row("GET", f"{_VAULT}/bsms", exported),
    Row("GET", f"{_VAULT}/policy", exported),
    Row("GET", f"{_VAULT}/movements", lambda page: _page(page, *_MOVEMENTS)),
    Row(
        "GET", f"{_VAULT}/movements.csv",
        lambda page: _file(page, *_MOVEMENTS, MOVEMENT_COLUMNS, order="oldest"),
    ),
    Row("GET", f"{_VAULT}/statement", statement),
    Row("GET", f"{_VAULT}/statement.csv", statement_file),
    Row("GET", f"{_VAULT}/coins", lambda page: _page(page, *_COINS)),
    Row("GET", f"{_VAULT}/coins.csv", lambda page: _file(page, *_COINS, COIN_COLUMNS)),
    form(
        f"{_VAULT}/coins/aside", history.SET_COIN_ASIDE, aside_page, "The coin is set aside.",
        to="vaults/{vault_id}/coins", asks="Set it aside", given=_until, has_page=True,
        beside=lambda page: (
            *_of_coin(page),
            *(() if _until(page)["until"] else (("Until", "a member releases it"),)),
        ),
        warns="No new proposal spends it. What spends it already goes on. Of a coin that is set aside, "
        "reason and end take the place of those it has.",
    ),
    form(
        f"{_VAULT}/coins/release", history.RELEASE_COIN, aside_page, "The coin is spendable again.",
        to="vaults/{vault_id}/coins", asks="Release it", steps_up=True, beside=_of_coin,
        warns="New proposals may spend it from then on.",
    ),
)  # fmt: skip
