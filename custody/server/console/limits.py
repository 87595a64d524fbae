"""Spending limits: what was typed of one, what it bounds in words, and a member's own."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from starlette.responses import Response

from custody.common.text import until
from custody.schemas.limits import MY_LIMITS, MyLimits, VaultLimits
from custody.schemas.proposals import PsbtPreview
from custody.schemas.vaults import LIST_WALLETS, Vault
from custody.server.console.context import PageContext
from custody.server.console.rendering import is_everything, sats_of
from custody.server.console.table import Row
from custody.server.console.typed import btc
from custody.server.errors import Invalid
from custody.server.rules.limits import Cycle
from multisig import format_btc

# Of the vaults, beside one's own limit.
SHOWN = 20


def left_words(mine: MyLimits, vault: Vault, of_role: int, of_vault: int) -> Sequence[tuple[str, int]]:
    """What is left of each sum that bounds the next payment, with its words. Neither where nothing is used
    up.
    """
    left = []
    if not is_everything(sats_of(mine.limit)):
        left.append((f"Left for all your payments until {until(mine.next_reset)}", of_role))
    own = vault.detailed_vault_limits
    if own is not None and own.per_cycle:
        left.append((f"Left for all payments of this vault until {until(own.next_reset)}", of_vault))
    return left


def left_of(page: PageContext, shown: PsbtPreview, vault: Vault) -> Sequence[tuple[str, int]]:
    """What the limits on sums leave after this payment."""
    if shown.role_left_sats is None or shown.vault_left_sats is None:
        return ()
    return left_words(page.read(MY_LIMITS), vault, shown.role_left_sats, shown.vault_left_sats)


# --- what was typed -----------------------------------------------------------------------------------------


def vault_limit(page: PageContext) -> dict[str, Any]:
    """As `create_wallet` and `update-vault` take it, but for its cycle. Raises Invalid."""
    per_cycle = page.form.one("per_cycle")
    if per_cycle not in ("yes", "no"):
        raise Invalid.at("/per_cycle", "Choose what the limit is for.")
    return {
        "transaction_limit": format_btc(btc(page.form.one("transaction_limit"), "/transaction_limit")),
        "per_cycle": per_cycle == "yes",
    }


def role_limit(page: PageContext, name: str) -> dict[str, Any]:
    """As `create-role` and `update-role-policies` take it, but for its cycle. Raises Invalid."""
    return {name: format_btc(btc(page.form.one(name), f"/{name}"))}


# --- one's own ----------------------------------------------------------------------------------------------


def my_limits(page: PageContext) -> Response:
    mine = page.read(MY_LIMITS)
    vaults: list[Vault] = []
    if sats_of(mine.limit) and page.workspace.may("MANAGE_WORKSPACE"):
        vaults = page.read(LIST_WALLETS, limit=SHOWN + 1)
    known = [
        (vault, *_most_now(mine, vault.detailed_vault_limits))
        for vault in vaults[:SHOWN]
        if vault.detailed_vault_limits is not None
    ]
    since = Cycle(mine.cycle_period, mine.cycle_day).start(mine.next_reset - timedelta(days=1))
    return page.render(
        "roles/limits.html", limits=mine, since=since.date(), most=known, has_more=len(vaults) > SHOWN
    )


def _most_now(mine: MyLimits, own: VaultLimits) -> tuple[int, str]:
    """The most that one's next payment from a vault may be, in satoshi, and which of both limits says so."""
    left, by_vault = sats_of(mine.unused), sats_of(own.unused if own.per_cycle else own.limit)
    return (left, "your limit bounds it") if left <= by_vault else (by_vault, "the vault's limit bounds it")


ROWS = (Row("GET", "/w/{workspace_id:int}/limits", my_limits),)
