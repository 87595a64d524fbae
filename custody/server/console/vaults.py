"""The vaults of a workspace, one of them, its addresses, and how one is made."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from custody.pages.headers import attachment
from custody.pages.rendering import Live
from custody.schemas.asset_tokens import TokenBalance
from custody.schemas.users import Member
from custody.schemas.vaults import Vault, VaultName
from custody.server.console.limits import typed_words, vault_limit
from custody.server.console.members import members_of
from custody.server.console.table import Review, Row
from custody.server.console.typed import query_sats, whole
from custody.server.console.visit import Visit
from custody.server.console.words import controls_words, member_words
from custody.server.domain.errors import CustodyError, Invalid, NotFound
from custody.server.store.models import full_name
from custody.text import count
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


def vaults(visit: Visit) -> Response:
    name, after = visit.query("name").strip(), visit.query("after")
    found: list[Vault] = visit.get(
        "list-wallets",
        workspace_id=visit.here.id,
        limit=PAGE + 1,
        name=name or None,
        after=after or None,
    )
    shown = found[:PAGE]
    more = urlencode({"name": name, "after": shown[-1].id}) if len(found) > PAGE else None
    return visit.page("vaults/list.html", here="vaults", vaults=shown, name=name, after=after, more=more)


def vault_here(visit: Visit) -> Vault:
    """The vault of the path. Raises NotFound."""
    return vault_by_id(visit, visit.path_param("vault_id"))


def vault_by_id(visit: Visit, vault_id: str) -> Vault:
    """Raises NotFound."""
    found: list[Vault] = visit.get("list-wallets", workspace_id=visit.here.id, vault_id=vault_id)
    if not found:
        raise NotFound("There is no such vault in this workspace.")
    return found[0]


def vault_name(visit: Visit, vault_id: str) -> VaultName:
    """Raises NotFound."""
    found: list[VaultName] = visit.get("vault-names", workspace_id=visit.here.id, vault_id=vault_id)
    if not found:
        raise NotFound("There is no such vault in this workspace.")
    return found[0]


def vaults_to_choose(visit: Visit, chosen: str = "") -> list[VaultName]:
    """The first MAX_CHOICES, and ``chosen``, to which a vault's own page linked. Raises NotFound."""
    found: list[VaultName] = visit.get("vault-names", workspace_id=visit.here.id, limit=MAX_CHOICES)
    if chosen and chosen not in {each.id for each in found}:
        return [vault_name(visit, chosen), *found]
    return found


def path_of(visit: Visit, vault: Vault) -> str:
    return f"{visit.here.path}/vaults/{vault.id}"


def vault(visit: Visit) -> Response:
    shown = vault_here(visit)
    export = None
    if visit.here.may(*VIEWERS):
        export = visit.get("vault-export", workspace_id=visit.here.id, vault_id=shown.id, format="bsms")
    return visit.page(
        "vaults/vault.html", here="vaults", export=export, live_standing=_live(visit, shown),
        **_standing(visit, shown),
    )  # fmt: skip


def standing(visit: Visit) -> Response:
    """The part that follows what happens."""
    shown = vault_here(visit)
    return visit.part(_live(visit, shown), **_standing(visit, shown))


def _live(visit: Visit, shown: Vault) -> Live:
    return Live("standing", "vaults/standing.html", f"{path_of(visit, shown)}/standing", CHAIN_SECONDS)


def _standing(visit: Visit, shown: Vault) -> dict[str, Any]:
    place = {"workspace_id": visit.here.id, "vault_id": shown.id}
    controls = visit.get("vault-controls", **place)
    held, trouble = holdings(visit, shown.id)
    return {
        "vault": shown,
        "base": path_of(visit, shown),
        "controls": controls,
        "controls_words": controls_words(
            only_address_book=controls.only_address_book, maker_may_approve=controls.maker_may_approve
        ),
        "people": names_of(visit, shown),
        "movements": visit.get("vault-history", **place, limit=NEWEST).movements,
        "held": held,
        "trouble": trouble,
    }


def holdings(visit: Visit, vault_id: str) -> tuple[list[TokenBalance], str]:
    """The tokens that a vault holds, and why where these are unknown."""
    if not visit.here.may(*VIEWERS):
        return [], ""
    try:
        return visit.get("get-tokens", workspace_id=visit.here.id, vault_id=vault_id), ""
    except CustodyError as error:
        return [], error.detail


def names_of(visit: Visit, *shown: Vault) -> dict[str, str]:
    """The signers' names, by user id."""
    return {
        each.user_id: visit.person(each.user_id, full_name(each.first_name.value, each.surname.value))
        for one in shown
        for each in one.signers
    }


def bsms(visit: Visit) -> Response:
    """The vault for other wallets, as a file (BIP-129)."""
    place = {"workspace_id": visit.here.id, "vault_id": visit.path_param("vault_id")}
    export = visit.get("vault-export", **place, format="bsms")
    headers = attachment(f"vault-{export.vault_id[:8]}.bsms")
    return Response(export.text, headers=headers, media_type="text/plain; charset=utf-8")


# --- receiving ----------------------------------------------------------------------------------------------


def receive(visit: Visit) -> Response:
    """A fresh address, with an amount where one was asked for (BIP-21)."""
    shown, sats = vault_here(visit), None
    try:
        sats = query_sats(visit, "amount")
    except Invalid as error:
        visit.problem = error
    link = f"bitcoin:{shown.receive_address}"
    if sats:
        link += f"?amount={format_btc(Sats(sats))}"
    return visit.page(
        "vaults/receive.html", here="vaults", vault=shown, base=path_of(visit, shown), link=link, sats=sats,
        amount=visit.query("amount"),
    )  # fmt: skip


# --- making one ---------------------------------------------------------------------------------------------


def new_vault(visit: Visit) -> Response:
    """Raises PermissionDenied where the person may not see the members."""
    members = members_of(visit)
    return visit.page(
        "vaults/new.html",
        here="vaults",
        able=[each for each in members if each.can_sign],
        unable=[each for each in members if not each.can_sign],
    )


def review_vault(visit: Visit) -> Review:
    form = visit.form
    names = [member_words(each) for each in _signers(visit)]
    m, typed = whole(visit, "m"), vault_limit(visit)
    _require_signers(m, names)
    return Review(
        f"Make the vault {form.one('name')}",
        (
            ("Policy", f"{m} of these {len(names)} sign each payment"),
            *((f"Signer {place}", name) for place, name in enumerate(names, start=1)),
            ("Limit", typed_words(typed)),
        ),
        "Make the vault",
        "Policy, signers and name never change. Each signer compares the vault's code with the others and "
        "pins it before anyone pays to it.",
    )


def _signers(visit: Visit) -> list[Member]:
    """The chosen members. Raises Invalid."""
    members = {str(each.uuid): each for each in members_of(visit)}
    chosen = dict.fromkeys(visit.form.every("signers"))
    if not chosen.keys() <= members.keys():
        raise Invalid.at("/signers", "Choose the signers among the members of the workspace.")
    return [members[each] for each in chosen]


def _require_signers(m: int, names: Sequence[str]) -> None:
    if not names:
        raise Invalid.at("/signers", "Choose the signers.")
    if not 1 <= m <= len(names):
        raise Invalid.at("/m", f"{m} signatures cannot be asked of {count(len(names), 'signer', 'signers')}.")


def make_vault(visit: Visit) -> Response:
    form = visit.form
    made: Vault = visit.post(
        "create_wallet",
        workspace_id=visit.here.id,
        name=form.one("name"),
        network=visit.here.entry.workspace_info.net,
        m=whole(visit, "m"),
        signers=[each.uuid for each in _signers(visit)],
        **vault_limit(visit),
    )
    return visit.go(path_of(visit, made), " ".join(("The vault is made.", *(made.warnings or ()))))


ROWS = (
    Row("GET", "/w/{workspace_id:int}/vaults", vaults),
    Row("GET", "/w/{workspace_id:int}/vaults/new", new_vault),
    Row("POST", "/w/{workspace_id:int}/vaults/new", make_vault, again=new_vault, review=review_vault),
    Row("GET", "/w/{workspace_id:int}/vaults/{vault_id}", vault),
    Row("GET", "/w/{workspace_id:int}/vaults/{vault_id}/standing", standing),
    Row("GET", "/w/{workspace_id:int}/vaults/{vault_id}/receive", receive),
    Row("GET", "/w/{workspace_id:int}/vaults/{vault_id}/bsms", bsms),
)
