"""Proofs of control (BIP-322): those of a workspace, asking a vault's signers for one, and its file."""

from typing import Final

from starlette.responses import Response

from custody.common.pages.serving import attachment
from custody.schemas.proofs import CREATE_PROOF, MAX_MESSAGE, PROOF
from custody.schemas.proposals import PSBT
from custody.server.console.context import PageContext
from custody.server.console.proposals import PROPOSERS
from custody.server.console.table import Row, form
from custody.server.console.vaults import vaults_to_choose
from custody.server.errors import PermissionDenied

PAGE: Final = 25
_WARNING: Final = (
    "Height and hash of the last block are added to the message. It moves nothing. Every reader of its file "
    "learns what it says."
)


def listing(page: PageContext) -> Response:
    after = page.query("after")
    wanted = {"tx_type": "proof", "order": "newest"}
    found, following = page.read_page(PSBT, {**wanted, "after": after or None}, limit=PAGE)
    return page.render("proofs/list.html", proofs=found, after=after, following=following)


def form_page(page: PageContext) -> Response:
    if not page.workspace.may(*PROPOSERS):
        raise PermissionDenied("Only those who manage the workspace ask for proofs.")
    chosen = page.form.one("vault_id") or page.query("vault")
    vaults = [(each.id, each.marked_name) for each in vaults_to_choose(page, chosen)]
    return page.render("proofs/new.html", vaults=vaults, chosen=chosen, longest=MAX_MESSAGE)


def file(page: PageContext) -> Response:
    psbt_id = page.path_param("psbt_id")
    found = page.read(PROOF, psbt_id=psbt_id)
    headers = attachment(f"proof-{psbt_id[:8]}.json")
    return Response(found.model_dump_json(indent=2) + "\n", headers=headers, media_type="application/json")


_HERE = "/w/{workspace_id:int}/proofs"
ROWS = (
    Row("GET", _HERE, listing),
    Row("GET", _HERE + "/new", form_page),
    form(
        _HERE + "/new", CREATE_PROOF, form_page, "Its signers are asked.", to="proposals/{0.psbt_id}",
        asks="Ask the signers", warns=_WARNING, optional=("address",),
    ),
    Row("GET", _HERE + "/{psbt_id}/file", file),
)  # fmt: skip
