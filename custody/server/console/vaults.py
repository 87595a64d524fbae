"""The vaults of a workspace; one of them, its addresses, its movements and coins as pages and as CSV files;
and how one is made.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from custody.common.pages.serving import attachment
from custody.common.spreadsheets import COIN_COLUMNS, MOVEMENT_COLUMNS
from custody.common.text import count
from custody.schemas.asset_tokens import TOKENS, TokenBalance
from custody.schemas.call import Answer, Call
from custody.schemas.history import VAULT_COINS, VAULT_HISTORY
from custody.schemas.users import MEMBERS
from custody.schemas.vaults import (
    CREATE_WALLET,
    LIST_WALLETS,
    VAULT_CONTROLS,
    VAULT_EXPORT,
    VAULT_NAMES,
    Vault,
    VaultName,
)
from custody.server.console.context import PageContext
from custody.server.console.limits import vault_limit
from custody.server.console.rendering import COIN_WORDS, MOVEMENT_WORDS, csv_file
from custody.server.console.table import Row, form, live, template_view
from custody.server.console.typed import query_day, query_sats
from custody.server.errors import CustodyError, Invalid
from custody.server.store.models import VaultRow, full_name
from custody.server.vaults.calls import quorum_warnings
from custody.server.vaults.stored import replacement_of
from multisig import Sats, format_btc

PAGE = 25
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
_TEXTS = ("kind", "status", "state", "label", "address", "txid", "with_replaced")
MOVEMENT_FILTERS = (
    "kind", "status", "label", "address", "txid", "with_replaced", "since", "before", "least", "most",
)  # fmt: skip
COIN_FILTERS = ("state", "address", "least", "most")


vaults = template_view(
    "vaults/list.html",
    vaults=lambda page: page.read_page(
        LIST_WALLETS, name=page.query("name").strip() or None, limit=PAGE, key="id"
    ),
)


def vault_here(page: PageContext) -> Vault:
    """The vault of the path. Raises NotFound."""
    return vault_by_id(page, page.path_param("vault_id"))


def vault_by_id(page: PageContext, vault_id: str) -> Vault:
    """Raises NotFound."""
    vaults = page.read(LIST_WALLETS, vault_id=vault_id)
    if not vaults:
        raise page.missing("There is no such vault in this workspace.")
    return vaults[0]


def vault_name(page: PageContext, vault_id: str) -> VaultName:
    """Raises NotFound."""
    names = page.read(VAULT_NAMES, vault_id=vault_id)
    if not names:
        raise page.missing("There is no such vault in this workspace.")
    return names[0]


def replacement_name(page: PageContext, shown: Vault) -> VaultName | None:
    """The vault in its place now: the last one where a replacement was replaced again. Raises NotFound."""
    with page.reading() as ctx:
        last = replacement_of(ctx.db, ctx.db.get_one(VaultRow, shown.id))
    return None if last is None else vault_name(page, last.id)


def vaults_to_choose(page: PageContext, field: str, *, replaced: bool = False) -> list[VaultName]:
    """The first MAX_CHOICES, and the one in the form's field, or to which a vault's own page linked.
    ``replaced``: those that pay nothing new, too. Raises NotFound.
    """
    chosen = page.form.one(field) or page.query("vault")
    names = page.read(VAULT_NAMES, limit=MAX_CHOICES)
    names = [each for each in names if replaced or each.replaced_by is None]
    if chosen and chosen not in {each.id for each in names}:
        return [vault_name(page, chosen), *names]
    return names


def _export(page: PageContext) -> dict[str, Any]:
    if not page.workspace.may(*VIEWERS):
        return {"export": None}
    return {"export": page.read(VAULT_EXPORT, vault_id=page.path_param("vault_id"), format="bsms")}


def _standing(page: PageContext) -> dict[str, Any]:
    shown = vault_here(page)
    controls = page.read(VAULT_CONTROLS, vault_id=shown.id)
    held, trouble = holdings(page, shown.id)
    return {
        "vault": shown,
        "controls": controls,
        "people": names_of(page, shown),
        "movements": page.read(VAULT_HISTORY, vault_id=shown.id, limit=NEWEST).movements,
        "held": held,
        "trouble": trouble,
    }


def holdings(page: PageContext, vault_id: str) -> tuple[list[TokenBalance], str]:
    """The tokens that a vault holds, and why where these are unknown."""
    if not page.workspace.may(*VIEWERS):
        return [], ""
    try:
        return page.read(TOKENS, vault_id=vault_id), ""
    except CustodyError as error:
        return [], error.detail


def names_of(page: PageContext, shown: Vault) -> dict[str, str]:
    """The signers' names, by user id."""
    return {
        each.user_id: page.person(each.user_id, full_name(each.first_name.value, each.surname.value))
        for each in shown.signers
    }


def bsms(page: PageContext) -> Response:
    """The vault for other wallets, as a file (BIP-129)."""
    export = page.read(VAULT_EXPORT, vault_id=page.path_param("vault_id"), format="bsms")
    headers = attachment(f"vault-{export.vault_id[:8]}.bsms")
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
    filters |= {"min_sats": query_sats(page, "least"), "max_sats": query_sats(page, "most")}
    if "since" in names:
        filters |= {"from_time": query_day(page, "since"), "to_time": query_day(page, "before")}
    return {name: value for name, value in filters.items() if value != ""}


def _page(
    page: PageContext, call: Call[Any, Any], filters: Sequence[str], template: str, **context: Any
) -> Response:
    """A page of a list; where a filter cannot be read, an empty one that says what is wrong."""
    shown, cursor = vault_here(page), page.query("cursor")
    listed = None
    try:
        listed = page.read(
            call, vault_id=shown.id, **_wanted(page, filters), cursor=cursor or None, limit=PAGE
        )
    except Invalid as error:
        page.problem = error
    typed = urlencode([(name, value) for name in filters if (value := page.query(name))])
    return page.render(template, vault=shown, found=listed, filters=typed, cursor=cursor, **context)


def movements(page: PageContext) -> Response:
    return _page(page, VAULT_HISTORY, MOVEMENT_FILTERS, "vaults/movements.html", kinds=MOVEMENT_WORDS)


def coins(page: PageContext) -> Response:
    return _page(page, VAULT_COINS, COIN_FILTERS, "vaults/coins.html", states=COIN_WORDS)


def movements_file(page: PageContext) -> Response:
    """Everything that the filters match, the oldest first."""
    pages = _pages(page, VAULT_HISTORY, MOVEMENT_FILTERS, {"order": "oldest"})
    name = f"movements-{page.path_param('vault_id')[:8]}"
    return csv_file(name, MOVEMENT_COLUMNS, (each.movements for each in pages))


def coins_file(page: PageContext) -> Response:
    pages = _pages(page, VAULT_COINS, COIN_FILTERS, {})
    name = f"coins-{page.path_param('vault_id')[:8]}"
    return csv_file(name, COIN_COLUMNS, (each.coins for each in pages))


def _pages(
    page: PageContext, call: Call[Any, Answer], filters: Sequence[str], more: Mapping[str, Any]
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
        f"{_VAULTS}/new", CREATE_WALLET, new_vault,
        "The vault is made.", to="vaults/{0.id}", given=_typed, asks="Make the vault", warns=_warned,
        has_page=True,
    ),
    *live(
        _VAULT, f"{_VAULT}/standing", ("vaults/vault.html", "vaults/standing.html"), _standing,
        around=_export, seconds=CHAIN_SECONDS,
    ),
    Row("GET", f"{_VAULT}/receive", receive),
    Row("GET", f"{_VAULT}/bsms", bsms),
    Row("GET", f"{_VAULT}/movements", movements),
    Row("GET", f"{_VAULT}/movements.csv", movements_file),
    Row("GET", f"{_VAULT}/coins", coins),
    Row("GET", f"{_VAULT}/coins.csv", coins_file),
)  # fmt: skip
