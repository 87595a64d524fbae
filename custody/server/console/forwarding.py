"""A member's own money, from their signing profile into a vault."""

from typing import Any

from starlette.responses import Response

from custody.common.pages.figures import address
from custody.schemas.keys import SIGNING_PROFILE_ADDRESS, SigningProfileAddress
from custody.schemas.proposals import TxType
from custody.schemas.sending import FORWARD_TO_VAULT, PREVIEW_FORWARD
from custody.server.console.context import PageContext
from custody.server.console.money import money_of
from custody.server.console.proposing import MoneyReview
from custody.server.console.table import Review, Row, form
from custody.server.console.typed import whole
from custody.server.console.vaults import vault_by_id, vaults_to_choose
from custody.server.errors import CustodyError, Invalid, PermissionDenied
from multisig import MultisigError, parse_btc


def form_page(page: PageContext) -> Response:
    if not page.workspace.may("PAYMENT_INIT"):
        raise PermissionDenied("Your role here does not forward own money.")
    profile, why_not = None, ""
    chosen = page.form.one("vault") or page.query("vault")
    try:
        profile = _profile(page)
    except CustodyError as error:
        why_not = error.detail
    return page.render(
        "proposals/forward.html",
        vaults=vaults_to_choose(page, chosen),
        chosen=chosen,
        profile=profile,
        why_not=why_not,
    )


def _profile(page: PageContext) -> SigningProfileAddress:
    return page.read(SIGNING_PROFILE_ADDRESS, network=page.workspace.entry.workspace_info.net)


def _body(page: PageContext) -> dict[str, Any]:
    """Raises Invalid."""
    form = page.form
    body: dict[str, Any] = {
        "workspace_id": page.workspace.id,
        "vault_id": form.one("vault"),
        "network": page.workspace.entry.workspace_info.net,
        "fee_sats": whole(page, "fee_sats"),
        "allow_unconfirmed": form.ticked("allow_unconfirmed"),
        "wallet_address": _profile(page).wallet_address,
    }
    amount = form.one("amount").strip()
    if form.ticked("sweep"):
        if amount:
            raise Invalid.at("/amount", "Type an amount, or tick that everything is sent: not both.")
        return body | {"sweep": True}
    try:
        return body | {"amount_sats": parse_btc(amount)}
    except MultisigError as error:
        raise Invalid.at("/amount", f"In BTC an amount is like 0.25. {error}") from None


def review(page: PageContext) -> Review:
    """What the form would propose now. Raises what proposing it would, at its field."""
    body = _body(page)
    vault = vault_by_id(page, body["vault_id"])
    shown = page.read(PREVIEW_FORWARD, **body)
    return MoneyReview(
        "Forward your own money",
        (("From your own address", address(body["wallet_address"])),),
        "Propose it",
        "You alone sign it, on your own machine.",
        money=money_of(shown.psbt_base64, vault, {}, TxType.FORWARD),
        taken_from="your own address",
        amounts=(
            (f"Into {vault.name}", shown.amounts_sats[0]),
            ("Network fee", shown.fee_sats),
            ("Back to you", shown.change_sats),
        ),
        pinned=[("shown_coin", coin) for coin in shown.coins],
    )


def _confirmed(page: PageContext) -> dict[str, Any]:
    return _body(page) | {"coins": list(page.form.every("shown_coin"))}


_HERE = "/w/{workspace_id:int}/proposals/forward"
ROWS = (
    Row("GET", _HERE, form_page),
    form(
        _HERE, FORWARD_TO_VAULT, form_page, "It is proposed. Sign it on your own machine.",
        to="proposals/{0.psbt_id}", review=review, given=_confirmed,
    ),
)  # fmt: skip
