"""Proofs of control (BIP-322): those of a workspace, asking a vault's signers for one, and its file."""

from typing import Final

from starlette.responses import Response

from custody.common.pages.serving import attachment
from custody.schemas.proofs import CREATE_PROOF, MAX_MESSAGE, PROOF
from custody.schemas.proposals import PSBT
from custody.server.console.context import PageContext
from custody.server.console.proposals import PROPOSERS
from custody.server.console.table import Review, Row, form
from custody.server.console.vaults import vault_name, vaults_to_choose
from custody.server.errors import PermissionDenied

PAGE: Final = 25


def listing(page: PageContext) -> Response:
    after = page.query("after")
    wanted = {"workspace_id": page.workspace.id, "tx_type": "proof", "order": "newest"}
    found, following = page.read_page(PSBT, {**wanted, "after": after or None}, limit=PAGE)
    return page.render("proofs/list.html", proofs=found, after=after, following=following)


def form_page(page: PageContext) -> Response:
    if not page.workspace.may(*PROPOSERS):
        raise PermissionDenied("Only those who manage the workspace ask for proofs.")
    chosen = page.form.one("vault_id") or page.query("vault")
    vaults = [(each.id, each.marked_name) for each in vaults_to_choose(page, chosen)]
    return page.render("proofs/new.html", vaults=vaults, chosen=chosen, longest=MAX_MESSAGE)


def review(page: PageContext) -> Review:
    form = page.form
    coins = "are named and signed for" if form.ticked("with_coins") else "are not named"
    return Review(
        "Ask for this proof?",
        (
            ("Vault", vault_name(page, form.one("vault_id")).name),
            ("Message", form.one("message").strip()),
            ("Added to it", "height and hash of the last block"),
            ("Address that signs", form.one("address").strip() or "the vault's first one"),
            ("Its confirmed coins", coins),
        ),
        "Ask the signers",
        "It moves nothing. Every reader of its file learns what it says.",
    )


def file(page: PageContext) -> Response:
    psbt_id = page.path_param("psbt_id")
    found = page.read(PROOF, workspace_id=page.workspace.id, psbt_id=psbt_id)
    headers = attachment(f"proof-{psbt_id[:8]}.json")
    return Response(found.model_dump_json(indent=2) + "\n", headers=headers, media_type="application/json")


_HERE = "/w/{workspace_id:int}/proofs"
ROWS = (
    Row("GET", _HERE, listing),
    Row("GET", _HERE + "/new", form_page),
    form(
        _HERE + "/new", CREATE_PROOF, form_page, "Its signers are asked.", to="proposals/{0.psbt_id}",
        review=review, given=lambda page: {"address": page.form.one("address").strip() or None},
    ),
    Row("GET", _HERE + "/{psbt_id}/file", file),
)  # fmt: skip
