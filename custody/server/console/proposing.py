"""A new payment, and a forward of a member's own money from their signing profile into a vault: the form, its
review, and proposing it.

The review pins the coins and the rate that it showed: what was reviewed is proposed, or it is refused.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, get_args

from starlette.responses import Response

from custody.common.pages.figures import address
from custody.common.recipients import look_alike_words, reads_as_address, typed_address
from custody.common.text import SHORT_ID, name_key, plain
from custody.common.text import btc as plain_btc
from custody.schemas import proposals as wire
from custody.schemas.common import Priority
from custody.schemas.history import VAULT_COINS, CoinState
from custody.schemas.keys import SIGNING_PROFILE_ADDRESS, SigningProfileAddress
from custody.schemas.limits import MY_LIMITS
from custody.schemas.sending import FORWARD_TO_VAULT, MAX_SEND, PREVIEW_FORWARD
from custody.schemas.vaults import VAULT_CONTROLS, Vault, VaultName
from custody.server.console.addresses import entries_of, labels_of
from custody.server.console.context import PageContext, number_of
from custody.server.console.limits import left_of, left_words
from custody.server.console.money import MoneyReview, money_of
from custody.server.console.proposals import PROPOSER
from custody.server.console.rendering import sats_of
from custody.server.console.reviews import Review, require_as_shown, review_page, shown_mark
from custody.server.console.table import Row, form
from custody.server.console.typed import btc, fee_rate
from custody.server.console.vaults import names_of, vault_by_id, vaults_to_choose
from custody.server.errors import CustodyError, Invalid, NotFound, StateConflict
from custody.server.proposals.payments import parse_op_return, parse_recipient
from custody.server.proposals.propose import newest_same
from custody.server.proposals.records import collected_signatures
from custody.server.store.models import ProposalRow, VaultRow
from multisig import Network

_GROUPED = re.compile(r"[0-9]{1,3}(,[0-9]{3})+")


@dataclass(frozen=True)
class RecipientRow:
    """A row of the form, as it was typed."""

    recipient: str = ""
    amount: str = ""


# --- the form -----------------------------------------------------------------------------------------------


def form_page(page: PageContext) -> Response:
    """With what was typed, where the form comes back."""
    page.workspace.require(PROPOSER)
    wanted = page.form.one("wallet") or page.query("vault")
    vaults = vaults_to_choose(page, "wallet")
    chosen = vault_by_id(page, wanted) if wanted else _first_shown(page, vaults)
    return page.render(
        "proposals/new.html",
        vaults=vaults,
        vault=chosen,
        rows=_rows(page),
        most_recipients=wire.MAX_RECIPIENTS,
        **({} if chosen is None else _funds(page, chosen)),
    )


def _first_shown(page: PageContext, vaults: Sequence[VaultName]) -> Vault | None:
    """A vault whose row cannot be read is none to pay from, and keeps nobody from the others (P102)."""
    for each in vaults:
        with suppress(NotFound):
            return vault_by_id(page, each.id)
    return None


def _rows(page: PageContext) -> Sequence[RecipientRow]:
    rows = typed_rows(page)
    more = 3 if page.form.one("back") == "more" else 0
    return (*rows, *[RecipientRow()] * max(more, 0 if rows else 1))[: wire.MAX_RECIPIENTS]


def typed_rows(page: PageContext) -> list[RecipientRow]:
    """The rows that are not empty."""
    pairs = zip(page.form.every("recipient"), page.form.every("amount"), strict=False)
    stripped = (RecipientRow(recipient.strip(), amount.strip()) for recipient, amount in pairs)
    return [row for row in stripped if row.recipient or row.amount]


def _funds(page: PageContext, vault: Vault) -> dict[str, Any]:
    """The vault's limits, what may be spent of it, and at which rates; its coins where the person asked to
    choose them. Where these are unknown, ``why_not``: the form works without.
    """
    chooses = page.form.one("back") == "coins" or page.form.ticked("coin")
    context: dict[str, Any] = {"funds": None, "chooses": chooses, "coins": (), "limits": (), "why_not": ""}
    try:
        context["limits"] = _limits(page, vault)
        funds = page.read(MAX_SEND, wallet_id=vault.id, recipients=[vault.receive_address])
        if chooses:
            asked_for = {"vault_id": vault.id, "state": CoinState.SPENDABLE, "limit": wire.MAX_COINS}
            context["coins"] = page.read(VAULT_COINS, **asked_for).coins
    except CustodyError as error:
        return context | {"why_not": error.detail}
    return context | {"funds": funds}


def _limits(page: PageContext, vault: Vault) -> Sequence[tuple[str, int]]:
    mine, own = page.read(MY_LIMITS), vault.detailed_vault_limits
    of_vault = 0 if own is None else sats_of(own.unused)
    each = (
        () if own is None or own.per_cycle else (("Most in each payment, fee included", sats_of(own.limit)),)
    )
    return (*each, *left_words(mine, vault, sats_of(mine.unused), of_vault))


# --- what was typed, as the API takes it --------------------------------------------------------------------


def psbt_request(page: PageContext) -> dict[str, Any]:
    """The body of `create-psbt`. Raises Invalid beside the field, and NotFound."""
    form, rows = page.form, typed_rows(page)
    names = [row.recipient for row in rows if row.recipient and typed_address(row.recipient) is None]
    known = {name_key(each.name): each.address for each in entries_of(page, "names", names)}
    recipients = [_recipient(number, row.recipient, known) for number, row in enumerate(rows)]
    op_return = form.one("op_return").strip() or None
    if not rows and op_return is None:
        raise Invalid.at("/recipients", "Type at least one recipient, or the data of a transaction.")
    body: dict[str, Any] = {
        "wallet_id": form.one("wallet"),
        "tx_type": "send",
        "recipients": recipients,
        "amounts_sats": None,
        "description": form.one("description").strip() or None,
        "op_return": op_return,
        **_rate(page),
    }
    if form.ticked("coin"):
        body["coins"] = list(form.every("coin"))
    amounts = [_sats(page, number, row, recipients[number]) for number, row in enumerate(rows)]
    if form.ticked("most"):
        return body | _everything(page, body, amounts)
    if None in amounts:
        number = amounts.index(None)
        raise Invalid.at(f"/amounts_sats/{number}", "Type an amount, or tick that the most is sent.")
    return body | {"amounts_sats": amounts or None}


def _recipient(number: int, text: str, names: Mapping[str, str]) -> str:
    """An address or a link is never looked up as a name. Raises Invalid."""
    if not text:
        raise Invalid.at(f"/recipients/{number}", "Type whom this amount goes to: an address, or a name.")
    address = typed_address(text) or names.get(name_key(text))
    if address is None and not reads_as_address(text):
        words = f"No entry of the address book is called {plain(text)}, and it is not an address."
        raise Invalid.at(f"/recipients/{number}", words)
    return address or text


def _sats(page: PageContext, number: int, row: RecipientRow, recipient: str) -> int | None:
    """The typed amount, else the link's, if there is one. Raises Invalid."""
    pointer = f"/amounts_sats/{number}"
    if not row.amount:
        network = Network(vault_by_id(page, page.form.one("wallet")).chain)
        return parse_recipient(recipient, network, f"/recipients/{number}").amount
    text = row.amount.replace(" ", "").replace("\N{NARROW NO-BREAK SPACE}", "")
    in_sats = page.form.one("unit") == "sats"
    # As the console writes it: 25,000.
    plain_text = text.replace(",", "") if _GROUPED.fullmatch(text) else text
    if in_sats and not (plain_text.isascii() and plain_text.isdigit() and len(plain_text) <= 16):
        raise Invalid.at(pointer, "In sats an amount is a whole number, such as 25000.")
    sats = int(plain_text) if in_sats else btc(text, pointer)
    if not sats:
        raise Invalid.at(pointer, "Type an amount of more than 0.")
    return sats


def _rate(page: PageContext) -> dict[str, str]:
    chosen = page.form.one("fee", "medium")
    if chosen in get_args(Priority):
        return {"priority": chosen}
    if not page.form.one("fee_rate").strip():
        raise Invalid.at("/fee_rate", "Type a rate in sat/vB, or choose one of the three.")
    return {"fee_rate": fee_rate(page)}


def _everything(page: PageContext, body: Mapping[str, Any], amounts: Sequence[int | None]) -> dict[str, Any]:
    """The most that one recipient can be sent now, by coins and limits; of named coins, all they hold.

    An amount that the review showed stays, whatever the vault has received since.
    """
    shown = page.form.one("shown_most")
    if shown.isascii() and shown.isdigit():
        return {"amounts_sats": [int(shown[:16])]}
    if [*amounts] != [None]:
        raise Invalid.at("/most", "The most is sent to one recipient, without an amount.")
    if "coins" in body:
        return {"sweep_coins": True}
    taken = ("wallet_id", "op_return", "priority", "fee_rate", "recipients")
    maximum = page.read(MAX_SEND, **{name: body.get(name) for name in taken})
    if not maximum.amount_sats:
        raise Invalid.at("/most", maximum.words)
    return {"amounts_sats": [maximum.amount_sats]}


# --- the review, and making it ------------------------------------------------------------------------------


def review(page: PageContext) -> Review:
    """What the form would propose now. Raises what proposing it would, at its field."""
    vault = vault_by_id(page, page.form.one("wallet"))
    with_fields = psbt_request(page)
    shown = page.read(wire.PREVIEW_PSBT, **with_fields)
    pinned = [("shown_coin", coin) for coin in shown.coins]
    amounts = "" if with_fields["amounts_sats"] is None else str(with_fields["amounts_sats"][0])
    pinned += [("shown_rate", shown.asked_fee_rate), ("shown_most", amounts)]
    pinned += [("shown_address", address) for address in shown.recipients]
    pinned += [("shown_sats", str(sats)) for sats in shown.amounts_sats]
    pinned += [("shown_same", shown.same_as or ""), shown_mark(*_reviewed(with_fields))]
    return MoneyReview(
        "Review the payment",
        (("Description", with_fields["description"] or "none"), ("Approvals", _approvals(page, vault))),
        "Propose it",
        money=money_of(page, shown.psbt_base64, vault),
        taken_from=vault.name,
        amounts=(("Leaves the vault, fee included", shown.movement_sats),),
        left=left_of(page, shown, vault),
        pinned=pinned,
        warning=_warning(page, shown),
    )


def _warning(page: PageContext, shown: wire.PsbtPreview) -> str:
    known = [one for each in shown.resembles if each is not None for one in each.split(", ")]
    warnings = look_alike_words(shown.recipients, shown.resembles, labels_of(page, known))
    if shown.same_as is not None:
        with page.reading() as ctx:
            same = ctx.db.get_one(ProposalRow, shown.same_as)
            vault, signatures = ctx.db.get_one(VaultRow, same.vault_id), collected_signatures(ctx.db, same.id)
        pays = "has paid" if same.status == "CONFIRMED" else "pays"
        warnings.insert(
            0,
            f"{vault.name} {pays} the same {plain_btc(sum(shown.amounts_sats))} BTC in proposal "
            f"{same.id[:SHORT_ID]} ({signatures} of {same.m} signatures). If it is the same bill, do not "
            "propose it again: it would be paid twice.",
        )
    if 0 < sum(shown.amounts_sats) < shown.fee_sats:
        warnings.append("The fee is more than what is paid.")
    return " ".join(warnings)


def _approvals(page: PageContext, vault: Vault) -> str:
    names = names_of(page, vault)
    signers = {
        each.user_id: names[each.user_id]
        for each in vault.signers
        if each.may_approve is not False and each.key_state in (None, "active")
    }
    controls = page.read(VAULT_CONTROLS, vault_id=vault.id)
    if not controls.maker_may_approve:
        signers.pop(str(page.user.uuid), None)
    if len(signers) < vault.m:
        return f"{vault.m} are needed, and only these may approve: {', '.join(signers.values()) or 'no one'}"
    named = "".join(f"; one has to come from {each.words}" for each in controls.named_approvers)
    return f"{vault.m} of {', '.join(signers.values())}{named}"


def _reviewed(body: Mapping[str, Any]) -> list[Any]:
    """Pinned beside coins and rate: an entry of the address book may have changed."""
    return [body[name] for name in ("wallet_id", "recipients", "description", "op_return", "amounts_sats")]


def _pays_twice(page: PageContext, op_return: str | None) -> bool:
    """Whether another proposal than the review showed pays the same by now."""
    form, data = page.form, None if op_return is None else parse_op_return(op_return)
    sats = [number for text in form.every("shown_sats") if (number := number_of(text)) is not None]
    with page.reading() as ctx:
        same = newest_same(ctx, page.workspace.id, zip(form.every("shown_address"), sats, strict=False), data)
    return same not in (None, form.one("shown_same"))


def make(page: PageContext) -> Response:
    form = page.form
    body = psbt_request(page)
    require_as_shown(page, *_reviewed(body))
    del body["priority" if "priority" in body else "fee_rate"]
    pinned = {"coins": list(form.every("shown_coin")), "fee_rate": form.one("shown_rate")}
    if _pays_twice(page, body["op_return"]) and not page.is_repeated(wire.CREATE_PSBT, {**body, **pinned}):
        page.problem = StateConflict("A payment that pays the same is new since you looked.")
        return review_page(page, review(page))
    try:
        made = page.act(wire.CREATE_PSBT, **{**body, **pinned})
    except CustodyError as error:
        if not any(fault.pointer.startswith("/coins") for fault in error.faults):
            raise
        raise StateConflict(
            "Another payment has taken a coin of this one. Nothing was proposed. Look at it again: other "
            "coins may do.",
            faults=error.faults,
        ) from error
    return page.redirect(
        f"{page.workspace.path}/proposals/{made.psbt_id}", "It is proposed. Its signers decide now."
    )


# --- a member's own money -----------------------------------------------------------------------------------


def forward_page(page: PageContext) -> Response:
    page.workspace.require("PAYMENT_INIT")
    profile, why_not = page.tried(lambda: _profile(page))
    return page.render(
        "proposals/forward.html",
        vaults=vaults_to_choose(page, "vault"),
        profile=profile,
        why_not=why_not,
    )


def _profile(page: PageContext) -> SigningProfileAddress:
    return page.read(SIGNING_PROFILE_ADDRESS, network=page.workspace.entry.workspace_info.net)


def _forward(page: PageContext) -> dict[str, Any]:
    """Raises Invalid."""
    form = page.form
    body: dict[str, Any] = {
        "vault_id": form.one("vault"),
        "network": page.workspace.entry.workspace_info.net,
        "fee_sats": page.number("fee_sats"),
        "allow_unconfirmed": form.ticked("allow_unconfirmed"),
        "wallet_address": _profile(page).wallet_address,
    }
    amount = form.one("amount").strip()
    if form.ticked("sweep"):
        if amount:
            raise Invalid.at("/amount", "Type an amount, or tick that everything is sent: not both.")
        return body | {"sweep": True}
    return body | {"amount_sats": btc(amount, "/amount")}


def review_forward(page: PageContext) -> Review:
    """What the form would propose now. Raises what proposing it would, at its field."""
    body = _forward(page)
    vault = vault_by_id(page, body["vault_id"])
    shown = page.read(PREVIEW_FORWARD, **body)
    return MoneyReview(
        "Forward your own money",
        (("From your own address", address(body["wallet_address"])),),
        "Propose it",
        "You alone sign it, on your own machine.",
        money=money_of(page, shown.psbt_base64, vault, wire.TxType.FORWARD),
        taken_from="your own address",
        amounts=(
            (f"Into {vault.name}", shown.amounts_sats[0]),
            ("Network fee", shown.fee_sats),
            ("Back to you", shown.change_sats),
        ),
        pinned=[("shown_coin", coin) for coin in shown.coins],
    )


_NEW = "/w/{workspace_id:int}/proposals/new"
_FORWARD = "/w/{workspace_id:int}/proposals/forward"
ROWS = (
    Row("POST", _NEW, make, again=form_page, has_page=True, review=review, acts=(wire.CREATE_PSBT,)),
    form(
        _FORWARD, FORWARD_TO_VAULT, forward_page, "It is proposed. Sign it on your own machine.",
        to="proposals/{0.psbt_id}", review=review_forward,
        given=lambda page: _forward(page) | {"coins": list(page.form.every("shown_coin"))}, has_page=True,
    ),
)  # fmt: skip
