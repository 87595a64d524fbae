"""Replacing a vault, on one page at the vault: who signs from then on, the second person, the pins, the
sweeps, and what is left.
"""

from typing import Any

from starlette.responses import Response

from custody.common.naming import next_name
from custody.common.text import count
from custody.schemas.address_book import WHITELIST_ADDRESSES
from custody.schemas.changes import CHANGES
from custody.schemas.history import VAULT_COINS
from custody.schemas.proposals import PREVIEW_PSBT, PSBT, Proposal, PsbtPreview
from custody.schemas.sending import SWEEP_VAULT
from custody.schemas.users import MEMBERS
from custody.schemas.vaults import REPLACE_VAULT, VAULT_EXPORT, VAULT_NAMES, Vault
from custody.server.console import vaults
from custody.server.console.addresses import BOOK_READERS
from custody.server.console.context import PAGE, PageContext
from custody.server.console.money import MoneyReview, money_of
from custody.server.console.proposals import coins_and_payments
from custody.server.console.reviews import Review, require_as_shown, shown_mark
from custody.server.console.table import Row, form
from custody.server.errors import CustodyError, StateConflict
from multisig import Network, Sats, format_btc
from multisig import Vault as Policy


def replacement(page: PageContext) -> Response:
    shown = vaults.vault_here(page)
    context = {"vault": shown, "named": _entries_that_lead_here(page)}
    if shown.replaced_by is not None:
        return page.render("vaults/replaced.html", **context, **_progress(page, shown))
    changes = page.read(CHANGES)
    waits = any(
        each.path == REPLACE_VAULT.path and each.status == "PENDING" and each.body["vault_id"] == shown.id
        for each in changes
    )
    able = [each for each in page.read(MEMBERS) if each.can_sign]
    now = {each.user_id for each in shown.signers}
    taken = [each.name for each in page.read(VAULT_NAMES)]
    name = next_name(shown.name, taken)
    return page.render("vaults/replace.html", **context, waits=waits, able=able, now=now, name=name)


def _entries_that_lead_here(page: PageContext) -> list[str]:
    """Names in the address book; none for a person who may not read it."""
    if not page.workspace.may(*BOOK_READERS):
        return []
    return [each.name for each in page.read(WHITELIST_ADDRESSES, leads_to=page.path_param("vault_id"))]


def _progress(page: PageContext, old: Vault) -> dict[str, Any]:
    last = vaults.replacement_name(page, old)
    assert last is not None, "its page shows a replacement"
    new = vaults.vault_by_id(page, last.id)
    newest: list[Proposal] = page.read(PSBT, vault_id=old.id, order="newest", limit=PAGE)
    return {
        "new": new,
        "signers": _signers_with_fingerprints(page, old, new),
        "export": page.read(VAULT_EXPORT, vault_id=new.id),
        "sweeps": [each for each in newest if each.recipients == [new.address]],
        "left": page.read(VAULT_COINS, vault_id=old.id, limit=PAGE),
        "held": vaults.holdings(page, old.id)[0],
    }


def _signers_with_fingerprints(page: PageContext, old: Vault, new: Vault) -> list[tuple[str, str, bool]]:
    """Name, master fingerprint and whether they are no signer of the old vault."""
    names, before = vaults.names_of(page, new), {each.user_id for each in old.signers}
    cosigners = Policy.from_descriptor(new.descriptor, Network(new.chain)).cosigners
    return [
        (names[each.user_id], cosigners[each.key_index].fingerprint.hex, each.user_id not in before)
        for each in new.signers
    ]


def _sweep(page: PageContext, old: Vault) -> tuple[Vault, PsbtPreview]:
    """The first transaction, as it would be proposed now, and the vault that it pays."""
    last = vaults.replacement_name(page, old)
    if last is None:
        raise StateConflict(f"The vault {old.name} is not replaced: replace it first.")
    new = vaults.vault_by_id(page, last.id)
    shown: PsbtPreview = page.read(
        PREVIEW_PSBT, wallet_id=old.id, tx_type="send",
        recipients=[new.address], sweep=True, fee_rate=page.form.one("fee_rate") or None,
    )  # fmt: skip
    return new, shown


def review_sweep(page: PageContext) -> Review:
    old = vaults.vault_here(page)
    new, shown = _sweep(page, old)
    return MoneyReview(
        f"Move the coins of {old.name} to {new.name}",
        (("Where one transaction does not take all coins", "Others follow, to the same address."),),
        "Propose to sweep",
        money=money_of(page, shown.psbt_base64, old),
        taken_from=old.name,
        amounts=(("Moves to the new vault", sum(shown.amounts_sats)), ("Fee", shown.fee_sats)),
        pinned=(("fee_rate", shown.asked_fee_rate), shown_mark(*coins_and_payments(shown.psbt_base64))),
    )


def sweep(page: PageContext) -> Response:
    old = vaults.vault_here(page)
    try:
        _, now = _sweep(page, old)
    except CustodyError:
        # Swept by the first press of a double click, whose answer this one gets; else the act refuses.
        pass
    else:
        require_as_shown(page, *coins_and_payments(now.psbt_base64))
    swept = page.act(SWEEP_VAULT, vault_id=old.id, fee_rate=page.form.one("fee_rate"))
    words = f"{count(len(swept.psbt_ids), 'sweep is', 'sweeps are')} proposed. The signers decide now."
    if swept.set_aside_sats:
        words += f" {format_btc(Sats(swept.set_aside_sats))} BTC are set aside, and stay."
    return page.redirect(page.request.url.path.rpartition("/")[0], words)


_REPLACE = "/w/{workspace_id:int}/vaults/{vault_id}/replace"
ROWS = (
    form(
        _REPLACE, REPLACE_VAULT, replacement, "The vault is replaced.", to="vaults/{vault_id}/replace",
        asks="Replace it", given=vaults.typed_policy,
        beside=lambda page: [("Leads to the old vault", name) for name in _entries_that_lead_here(page)],
        warns="Another manager of the workspace confirms it. Then the coins move to the new vault alone, "
        "beside every limit, and the old one pays nothing else. This is final.", has_page=True,
    ),
    Row("POST", f"{_REPLACE}/sweep", sweep, again=replacement, review=review_sweep, acts=(SWEEP_VAULT,)),
)  # fmt: skip
