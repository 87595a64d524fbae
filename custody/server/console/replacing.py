"""A payment after it was proposed: a higher fee, a child that pays for it, its coins taken back, its end."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from custody.schemas.proposals import (
    CANCEL_PSBT,
    CREATE_PSBT,
    PREVIEW_PSBT,
    CancelPsbtResponse,
    Proposal,
    PsbtPreview,
)
from custody.server.console.context import PageContext
from custody.server.console.money import money_of
from custody.server.console.proposals import labels_of, proposal_of
from custody.server.console.proposing import MoneyReview, left_of
from custody.server.console.table import Review, Row, form, require_as_shown, shown_mark
from custody.server.console.typed import fee_rate
from custody.server.console.vaults import vault_by_id
from custody.server.errors import CustodyError
from multisig import Psbt


@dataclass(frozen=True)
class ReplacementForm:
    """``asks``: what `create-psbt` is asked beside the rate, by the proposal's id."""

    title: str
    words: str
    action: str
    done: str
    asks: Callable[[str], Mapping[str, Any]]


CHANGES: Final[Mapping[str, ReplacementForm]] = {
    "bump": ReplacementForm(
        "Pay a higher fee",
        "The same payment is proposed again at a higher fee, out of its change; without change, out of its "
        "amount where it sends everything. Its signers approve the new version. At most one of all versions "
        "is mined.",
        "Propose the new version",
        "The new version is proposed. Its signers decide now.",
        lambda psbt_id: {"replaces_psbt_id": psbt_id},
    ),
    "take-back": ReplacementForm(
        "Take its coins back",
        "A new version spends the same coins and pays everything back to the vault. Once that is mined, the "
        "payment can never be. Its signers approve it.",
        "Propose to take it back",
        "Taking it back is proposed. Its signers decide now.",
        lambda psbt_id: {"cancels_psbt_id": psbt_id},
    ),
}


def _change(page: PageContext) -> ReplacementForm:
    return CHANGES[page.request.url.path.rpartition("/")[2]]


def _body(page: PageContext, proposal: Proposal, change: ReplacementForm) -> dict[str, Any]:
    ids = {"workspace_id": page.workspace.id, "wallet_id": proposal.vault_id, "tx_type": "send"}
    return {**ids, **change.asks(proposal.psbt_id)}


def form_page(page: PageContext) -> Response:
    """What it pays now, and what the fastest rate would cost."""
    proposal, change = proposal_of(page), _change(page)
    offered: PsbtPreview | None = None
    why_not = ""
    try:
        offered = page.read(PREVIEW_PSBT, **_body(page, proposal, change), priority="high")
    except CustodyError as error:
        why_not = error.detail
    return page.render(
        "proposals/change.html",
        proposal=proposal,
        change=change,
        offered=offered,
        why_not=why_not,
    )


def review(page: PageContext) -> Review:
    proposal, change = proposal_of(page), _change(page)
    shown = page.read(PREVIEW_PSBT, **_request(page, proposal, change))
    vault = vault_by_id(page, proposal.vault_id)
    return MoneyReview(
        change.title,
        (("Rate", f"{proposal.fee_rate} sat/vB before, {shown.fee_rate} sat/vB now"),),
        change.action,
        money=money_of(shown.psbt_base64, vault, labels_of(page, shown.recipients)),
        taken_from=vault.name,
        amounts=(
            ("Fee before", proposal.fee_sats),
            ("Fee of this one", shown.fee_sats),
            ("Leaves the vault, fee included", shown.movement_sats),
        ),
        left=left_of(page, shown, vault),
        pinned=(shown_mark(*_reviewed(shown.psbt_base64)),),
    )


def _request(page: PageContext, proposal: Proposal, change: ReplacementForm) -> dict[str, Any]:
    return {**_body(page, proposal, change), "fee_rate": fee_rate(page)}


def _reviewed(psbt_base64: str) -> list[Any]:
    """Its coins and what it pays. Not the lock time, which each block changes, nor the change's address."""
    psbt = Psbt.parse(psbt_base64)
    pays = [(b"" if each.derivations else each.script_pubkey, int(each.amount)) for each in psbt.outputs]
    return [sorted(str(each.outpoint) for each in psbt.inputs), sorted(pays)]


def make(page: PageContext) -> Response:
    proposal, change = proposal_of(page), _change(page)
    made = page.act(
        CREATE_PSBT,
        check=lambda made: require_as_shown(page, *_reviewed(made.psbt_base64)),
        **_request(page, proposal, change),
    )
    return page.redirect(f"{page.workspace.path}/proposals/{made.psbt_id}", change.done)


# --- its end ------------------------------------------------------------------------------------------------


def cancel_page(page: PageContext) -> Response:
    return page.render("proposals/cancel.html", proposal=proposal_of(page))


def review_cancel(page: PageContext) -> Review:
    proposal = proposal_of(page)
    out = sum(signer.decision == "approve" for signer in proposal.signers)
    warning = ""
    if out:
        warning = (
            f"{out} of {proposal.required_signatures} signatures are out and stay valid: a person who holds "
            "enough of them can still send it. Its coins stay locked: take them back afterwards, or free "
            "them."
        )
    facts = (
        ("Why", page.form.one("reason") or "no reason given"),
        ("What happens", "No further signature is accepted."),
    )
    return Review("Cancel the payment", facts, "Cancel it", warning)


def release_page(page: PageContext) -> Response:
    return page.render("proposals/release.html", proposal=proposal_of(page))


def _after_ending(ended: CancelPsbtResponse) -> str:
    if ended.coins_kept:
        return "It is cancelled. Signatures of it are out: take its coins back, or free them."
    if ended.released_signatures:
        return "Its coins are free. Do not pay again before it can no longer be sent."
    return "It is cancelled. Its coins are free. The platform has no signature of it; a signer may hold one."


_ONE = "/w/{workspace_id:int}/proposals/{psbt_id}"
ROWS = (
    *(Row("GET", f"{_ONE}/{kind}", form_page) for kind in CHANGES),
    *(
        Row("POST", f"{_ONE}/{kind}", make, again=form_page, review=review, acts=(CREATE_PSBT,))
        for kind in CHANGES
    ),
    Row("GET", f"{_ONE}/cancel", cancel_page),
    form(
        f"{_ONE}/cancel", CANCEL_PSBT, cancel_page, _after_ending, review=review_cancel,
        optional=("reason",),
    ),
    Row("GET", f"{_ONE}/release", release_page),
    form(
        f"{_ONE}/release", CANCEL_PSBT, release_page, _after_ending,
        given=lambda _page: {"release_coins": True},
    ),
)  # fmt: skip
