"""Replacing a vault, on one page at the vault: who signs from then on, the second person, the pins, the
sweeps, and what is left.
"""

from typing import Any

from starlette.responses import Response

from custody.common.naming import next_name
from custody.common.text import count
from custody.schemas.changes import CHANGES
from custody.schemas.history import VAULT_COINS
from custody.schemas.proposals import PSBT, Proposal
from custody.schemas.sending import SWEEP_VAULT
from custody.schemas.vaults import REPLACE_VAULT, VAULT_EXPORT, VAULT_NAMES, Vault
from custody.server.console.addresses import entries
from custody.server.console.members import members_of
from custody.server.console.proposals import BOOK_READERS
from custody.server.console.rendering import COIN_WORDS, member_words
from custody.server.console.table import Review, Row
from custody.server.console.vaults import (
    PAGE,
    chosen_signers,
    holdings,
    names_of,
    path_of,
    replacement_name,
    require_signers,
    vault_by_id,
    vault_here,
)
from custody.server.console.visit import Visit, whole
from custody.server.domain.errors import Invalid
from multisig import Network
from multisig import Vault as Policy


def _place(visit: Visit) -> dict[str, Any]:
    return {"workspace_id": visit.here.id, "vault_id": visit.path_param("vault_id")}


def replacement(visit: Visit) -> Response:
    shown = vault_here(visit)
    context = {"here": "vaults", "vault": shown, "base": path_of(visit, shown)}
    context["named"] = _entries_that_lead_here(visit, shown)
    if shown.replaced_by is not None:
        return visit.page("vaults/replaced.html", **context, **_progress(visit, shown))
    changes = visit.ask(CHANGES, workspace_id=visit.here.id)
    waits = any(
        each.path == REPLACE_VAULT.path and each.status == "PENDING" and each.body["vault_id"] == shown.id
        for each in changes
    )
    able = [each for each in members_of(visit) if each.can_sign]
    now = {each.user_id for each in shown.signers}
    taken = [each.name for each in visit.ask(VAULT_NAMES, workspace_id=visit.here.id)]
    name = next_name(shown.name, taken)
    return visit.page("vaults/replace.html", **context, waits=waits, able=able, now=now, name=name)


def _entries_that_lead_here(visit: Visit, old: Vault) -> list[str]:
    """Names in the address book; none for a person who may not read it."""
    return [each.name for each in entries(visit, leads_to=old.id)] if visit.here.may(*BOOK_READERS) else []


def _progress(visit: Visit, old: Vault) -> dict[str, Any]:
    last = replacement_name(visit, old)
    assert last is not None, "its page shows a replacement"
    new = vault_by_id(visit, last.id)
    newest: list[Proposal] = visit.ask(
        PSBT, workspace_id=visit.here.id, vault_id=old.id, order="newest", limit=PAGE
    )
    return {
        "new": new,
        "signers": _signers_with_fingerprints(visit, old, new),
        "export": visit.ask(VAULT_EXPORT, workspace_id=visit.here.id, vault_id=new.id),
        "sweeps": [each for each in newest if each.recipients == [new.address]],
        "states": COIN_WORDS,
        "left": visit.ask(VAULT_COINS, **_place(visit), limit=PAGE),
        "held": holdings(visit, old.id)[0],
    }


def _signers_with_fingerprints(visit: Visit, old: Vault, new: Vault) -> list[tuple[str, str, bool]]:
    """Name, master fingerprint and whether they are no signer of the old vault."""
    names, before = names_of(visit, new), {each.user_id for each in old.signers}
    cosigners = Policy.from_descriptor(new.descriptor, Network(new.chain)).cosigners
    return [
        (names[each.user_id], cosigners[each.key_index].fingerprint.hex, each.user_id not in before)
        for each in new.signers
    ]


def _wanted(visit: Visit) -> dict[str, Any]:
    signers = [each.uuid for each in chosen_signers(visit)]
    return {**_place(visit), "name": visit.form.one("name"), "m": whole(visit, "m"), "signers": signers}


def review_replacement(visit: Visit) -> Review:
    shown, signers, m = vault_here(visit), chosen_signers(visit), whole(visit, "m")
    require_signers(m, [member_words(each) for each in signers])
    if not visit.form.one("name"):
        raise Invalid.at("/name", "Name the new vault.")
    now = {each.user_id for each in shown.signers}
    pending: list[Proposal] = visit.ask(
        PSBT, workspace_id=visit.here.id, vault_id=shown.id, status="PENDING", limit=PAGE
    )
    unsigned = [each for each in pending if each.tx_type == "send" and not each.collected_signatures]
    return Review(
        f"Replace {shown.name} by {visit.form.one('name')}",
        (
            ("Policy", f"{m} of these {len(signers)} sign each payment"),
            *(("Signer" if str(each.uuid) in now else "New signer", member_words(each)) for each in signers),
            *((("Cancelled", f"the unsigned payment {each.psbt_id}")) for each in unsigned),
            *(("Leads to the old vault", name) for name in _entries_that_lead_here(visit, shown)),
        ),
        "Replace it",
        "Another manager of the workspace confirms it. Then the coins move to the new vault alone, beside "
        "every limit, and the old one pays nothing else. This is final.",
    )


def replace_vault(visit: Visit) -> Response:
    visit.act(REPLACE_VAULT, **_wanted(visit))
    return visit.go(f"{path_of(visit, vault_here(visit))}/replace", "The vault is replaced.")


def sweep(visit: Visit) -> Response:
    swept = visit.act(SWEEP_VAULT, **_place(visit))
    words = f"{count(len(swept.psbt_ids), 'sweep is', 'sweeps are')} proposed. The signers decide now."
    return visit.go(f"{path_of(visit, vault_here(visit))}/replace", words)


_REPLACE = "/w/{workspace_id:int}/vaults/{vault_id}/replace"
ROWS = (
    Row("GET", _REPLACE, replacement),
    Row(
        "POST", _REPLACE, replace_vault, again=replacement, review=review_replacement, steps_up=True,
        acts=(REPLACE_VAULT,),
    ),
    Row("POST", f"{_REPLACE}/sweep", sweep, again=replacement, acts=(SWEEP_VAULT,)),
)  # fmt: skip
