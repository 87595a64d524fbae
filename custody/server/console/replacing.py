"""A payment after it was proposed: a higher fee, a child that pays for it, its coins taken back, its end."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from custody.schemas.proposals import CANCEL_PSBT, CREATE_PSBT, PREVIEW_PSBT, Proposal, PsbtPreview
from custody.server.console.money import money_of
from custody.server.console.proposals import labels_of, proposal_of
from custody.server.console.proposing import MoneyReview, left_of
from custody.server.console.table import Review, Row, require_as_shown, shown_mark
from custody.server.console.vaults import vault_by_id
from custody.server.console.visit import Visit, fee_rate
from custody.server.domain.errors import CustodyError
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


def _change(visit: Visit) -> ReplacementForm:
    return CHANGES[visit.request.url.path.rpartition("/")[2]]


def _body(visit: Visit, proposal: Proposal, change: ReplacementForm) -> dict[str, Any]:
    place = {"workspace_id": visit.here.id, "wallet_id": proposal.vault_id, "tx_type": "send"}
    return {**place, **change.asks(proposal.psbt_id)}


def form_page(visit: Visit) -> Response:
    """What it pays now, and what the fastest rate would cost."""
    proposal, change = proposal_of(visit), _change(visit)
    offered: PsbtPreview | None = None
    why_not = ""
    try:
        offered = visit.ask(PREVIEW_PSBT, **_body(visit, proposal, change), priority="high")
    except CustodyError as error:
        why_not = error.detail
    return visit.page(
        "proposals/change.html",
        here="proposals",
        proposal=proposal,
        change=change,
        offered=offered,
        why_not=why_not,
    )


def review(visit: Visit) -> Review:
    proposal, change = proposal_of(visit), _change(visit)
    if visit.form.ticked("confirmed"):
        return Review(change.title, (), change.action)
    shown = visit.ask(PREVIEW_PSBT, **_asked(visit, proposal, change))
    vault = vault_by_id(visit, proposal.vault_id)
    return MoneyReview(
        change.title,
        (("Rate", f"{proposal.fee_rate} sat/vB before, {shown.fee_rate} sat/vB now"),),
        change.action,
        money=money_of(shown.psbt_base64, vault, labels_of(visit, shown.recipients)),
        taken_from=vault.name,
        amounts=(
            ("Fee before", proposal.fee_sats),
            ("Fee of this one", shown.fee_sats),
            ("Leaves the vault, fee included", shown.movement_sats),
        ),
        left=left_of(visit, shown, vault),
        pinned=(shown_mark(*_reviewed(shown.psbt_base64)),),
    )


def _asked(visit: Visit, proposal: Proposal, change: ReplacementForm) -> dict[str, Any]:
    return {**_body(visit, proposal, change), "fee_rate": fee_rate(visit)}


def _reviewed(psbt_base64: str) -> list[Any]:
    """Its coins and what it pays. Not the lock time, which each block changes, nor the change's address."""
    psbt = Psbt.parse(psbt_base64)
    pays = [(b"" if each.derivations else each.script_pubkey, int(each.amount)) for each in psbt.outputs]
    return [sorted(str(each.outpoint) for each in psbt.inputs), sorted(pays)]


def make(visit: Visit) -> Response:
    proposal, change = proposal_of(visit), _change(visit)
    made = visit.act(
        CREATE_PSBT,
        check=lambda made: require_as_shown(visit, *_reviewed(made.psbt_base64)),
        **_asked(visit, proposal, change),
    )
    return visit.go(f"{visit.here.path}/proposals/{made.psbt_id}", change.done)


# --- its end ------------------------------------------------------------------------------------------------


def cancel_page(visit: Visit) -> Response:
    return visit.page("proposals/cancel.html", here="proposals", proposal=proposal_of(visit))


def review_cancel(visit: Visit) -> Review:
    proposal = proposal_of(visit)
    out = sum(signer.decision == "approve" for signer in proposal.signers)
    warning = ""
    if out:
        warning = (
            f"{out} of {proposal.required_signatures} signatures are out and stay valid: a person who holds "
            "enough of them can still send it. Its coins stay locked: take them back afterwards, or free "
            "them."
        )
    facts = (
        ("Why", visit.form.one("reason") or "no reason given"),
        ("What happens", "No further signature is accepted."),
    )
    return Review("Cancel the payment", facts, "Cancel it", warning)


def cancel(visit: Visit) -> Response:
    return _end(visit, reason=visit.form.one("reason").strip() or None)


def release_page(visit: Visit) -> Response:
    return visit.page("proposals/release.html", here="proposals", proposal=proposal_of(visit))


def release(visit: Visit) -> Response:
    return _end(visit, release_coins=True)


def _end(visit: Visit, **how: Any) -> Response:
    psbt_id = visit.path_param("psbt_id")
    ended = visit.act(CANCEL_PSBT, psbt_id=psbt_id, workspace_id=visit.here.id, **how)
    words = "It is cancelled. Its coins are free. The platform has no signature of it; a signer may hold one."
    if ended.coins_kept:
        words = "It is cancelled. Signatures of it are out: take its coins back, or free them."
    elif ended.released_signatures:
        words = "Its coins are free. Do not pay again before it can no longer be sent."
    return visit.go(f"{visit.here.path}/proposals/{psbt_id}", words)


_ONE = "/w/{workspace_id:int}/proposals/{psbt_id}"
ROWS = (
    *(Row("GET", f"{_ONE}/{kind}", form_page) for kind in CHANGES),
    *(
        Row("POST", f"{_ONE}/{kind}", make, again=form_page, review=review, acts=(CREATE_PSBT,))
        for kind in CHANGES
    ),
    Row("GET", f"{_ONE}/cancel", cancel_page),
    Row("POST", f"{_ONE}/cancel", cancel, again=cancel_page, review=review_cancel, acts=(CANCEL_PSBT,)),
    Row("GET", f"{_ONE}/release", release_page),
    Row("POST", f"{_ONE}/release", release, again=release_page, acts=(CANCEL_PSBT,)),
)
