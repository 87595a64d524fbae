"""Making one coin of a vault's smallest ones: what that costs and saves now, the review, and proposing it."""

from typing import Any

from starlette.responses import Response

from custody.schemas.proposals import CREATE_PSBT, MAX_COINS, PREVIEW_PSBT
from custody.schemas.sending import CONSOLIDATION, Consolidation, one_coin_of
from custody.server.console.context import PageContext
from custody.server.console.money import MoneyReview, money_of
from custody.server.console.proposals import PROPOSER
from custody.server.console.table import form
from custody.server.console.typed import fee_rate
from custody.server.console.vaults import vault_here


def consolidation(page: PageContext) -> Response:
    page.workspace.require(PROPOSER)
    vault, (plan, refusal) = vault_here(page), page.tried(lambda: _plan(page))
    # What a form was refused for is said once.
    context = {"vault": vault, "plan": plan, "why_not": "" if page.problem else refusal}
    return page.render("vaults/consolidate.html", **context, most=MAX_COINS)


def _plan(page: PageContext) -> Consolidation:
    """Raises Invalid; StateConflict where nothing is gained."""
    typed: dict[str, Any] = {}
    if page.form.one("coins").strip():
        typed["coins"] = page.number("coins")
    if page.form.one("fee_rate").strip():
        typed["fee_rate"] = fee_rate(page)
    return page.read(CONSOLIDATION, vault_id=page.path_param("vault_id"), **typed)


def _review(page: PageContext) -> MoneyReview:
    vault, plan = vault_here(page), _plan(page)
    shown = page.read(PREVIEW_PSBT, **one_coin_of(vault.id, plan.address, plan.coins, plan.fee_rate))
    return MoneyReview(
        f"Make one coin of {len(plan.coins)}",
        (("Why", plan.words),),
        "Propose it",
        money=money_of(page, shown.psbt_base64, vault),
        taken_from=vault.name,
        amounts=(("Saved later", plan.saved_sats),),
        pinned=(
            *(("shown_coin", coin) for coin in plan.coins),
            ("shown_address", plan.address),
            ("shown_rate", plan.fee_rate),
        ),
    )


def _reviewed(page: PageContext) -> dict[str, Any]:
    """What is proposed, or refused: a coin may be gone by then."""
    pinned = (page.form.one("shown_address"), page.form.every("shown_coin"), page.form.one("shown_rate"))
    return one_coin_of(page.path_param("vault_id"), *pinned) | {"amounts_sats": None}


ROWS = (
    form(
        "/w/{workspace_id:int}/vaults/{vault_id}/consolidate", CREATE_PSBT, consolidation,
        "It is proposed. Its signers decide now.", to="proposals/{0.psbt_id}", given=_reviewed,
        review=_review, has_page=True,
    ),
)  # fmt: skip
