"""A member's own money, from their signing profile into a vault."""

from typing import Any

from starlette.responses import Response

from custody.schemas.keys import SigningProfileAddress
from custody.server.console.proposals import vault_of
from custody.server.console.proposing import MAX_CHOICES
from custody.server.console.table import Review, Row
from custody.server.console.visit import Visit
from custody.server.domain.errors import CustodyError, Invalid, PermissionDenied
from multisig import MultisigError, parse_btc


def form_page(visit: Visit) -> Response:
    if not visit.here.may("PAYMENT_INIT"):
        raise PermissionDenied("Your role here does not forward own money.")
    profile, why_not = None, ""
    try:
        profile = _profile(visit)
    except CustodyError as error:
        why_not = error.detail
    return visit.page(
        "proposals/forward.html",
        here="proposals",
        vaults=visit.get("list-wallets", workspace_id=visit.here.id, limit=MAX_CHOICES),
        profile=profile,
        why_not=why_not,
    )


def _profile(visit: Visit) -> SigningProfileAddress:
    found: SigningProfileAddress = visit.get(
        "signing-profile-address", network=visit.here.entry.workspace_info.net
    )
    return found


def _body(visit: Visit) -> dict[str, Any]:
    """Raises Invalid."""
    form = visit.form
    body: dict[str, Any] = {
        "workspace_id": visit.here.id,
        "vault_id": form.one("vault"),
        "network": visit.here.entry.workspace_info.net,
        "fee_sats": _whole(form.one("fee_sats")),
        "allow_unconfirmed": form.ticked("allow_unconfirmed"),
        "wallet_address": _profile(visit).wallet_address,
    }
    if form.ticked("sweep"):
        return body | {"sweep": True}
    try:
        return body | {"amount_sats": parse_btc(form.one("amount").strip())}
    except MultisigError as error:
        raise Invalid.at("/amount", f"In BTC an amount is like 0.25. {error}") from None


def _whole(text: str) -> int:
    text = text.strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 16:
        raise Invalid.at("/fee_sats", "The fee is a whole number of sats, such as 500.")
    return int(text)


def review(visit: Visit) -> Review:
    body = _body(visit)
    vault = vault_of(visit, body["vault_id"])
    amount = f"{body['amount_sats']:,} sats" if "amount_sats" in body else "all that is there, less the fee"
    facts = (
        ("From your own address", body["wallet_address"]),
        ("Into the vault", vault.name),
        ("Amount", amount),
        ("Network fee", f"{body['fee_sats']:,} sats"),
        ("Unconfirmed coins", "may be spent" if body["allow_unconfirmed"] else "are left alone"),
    )
    words = "Its coins are chosen when it is proposed. You look at it, and sign it, on your own machine."
    return Review("Forward your own money", facts, "Propose it", words)


def make(visit: Visit) -> Response:
    made = visit.post("forward-to-vault", **_body(visit))
    return visit.go(
        f"{visit.here.path}/proposals/{made.psbt_id}", "It is proposed. Sign it on your own machine."
    )


ROWS = (
    Row("GET", "/w/{workspace_id:int}/proposals/forward", form_page),
    Row("POST", "/w/{workspace_id:int}/proposals/forward", make, again=form_page, review=review),
)
