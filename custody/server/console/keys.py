"""The person's own keys: revoking one. Registering is `signerd`'s, beside the device; and their purchases."""

from starlette.responses import Response

from custody.schemas.keys import Key
from custody.schemas.purchases import PurchaseTransaction
from custody.server.console.identity import ACCOUNT
from custody.server.console.table import Review, Row
from custody.server.console.visit import Visit
from custody.server.domain.errors import Invalid, NotFound

PAGE = 25
REASONS = {
    "superseded": "another device replaced it; I still have the old one",
    "lost": "it is lost: I do not know who has it",
}
_MEANS = {
    "superseded": "It approves only moves between a workspace's own vaults, so that coins can be moved on.",
    "lost": "It approves nothing any more. Its approvals of pending proposals no longer count.",
}


def _key(visit: Visit) -> Key:
    """Raises NotFound."""
    found: list[Key] = visit.get("keys")
    for key in found:
        if key.id == visit.path_param("key_id"):
            return key
    raise NotFound("You have no such key.")


def revoke_page(visit: Visit) -> Response:
    return visit.page("account/revoke.html", here="account", key=_key(visit), reasons=REASONS)


def _reason(visit: Visit) -> str:
    reason = visit.form.one("reason")
    if reason not in REASONS:
        raise Invalid.at("/reason", "Choose a reason.")
    return reason


def review_revoke(visit: Visit) -> Review:
    key, reason = _key(visit), _reason(visit)
    forced = (("Also where a vault keeps too few signers", "yes"),) if visit.form.ticked("force") else ()
    return Review(
        "Revoke your key",
        (
            ("Key", f"{key.label.value or 'Key'}, fingerprint {key.master_fingerprint.value or 'unknown'}"),
            ("Because", REASONS[reason]),
            ("From now on", _MEANS[reason]),
            *forced,
        ),
        "Revoke it",
        "This is final. To sign for new vaults, register a new key.",
    )


def revoke(visit: Visit) -> Response:
    visit.post("revoke-key", key_id=_key(visit).id, reason=_reason(visit), force=visit.form.ticked("force"))
    return visit.go(ACCOUNT, "The key is revoked.")


def purchases(visit: Visit) -> Response:
    after = visit.query("after")
    found: list[PurchaseTransaction] = visit.get("purchases", limit=PAGE + 1, after=after or None)
    more = found[PAGE - 1].id if len(found) > PAGE else None
    return visit.page(
        "account/purchases.html", here="account", purchases=found[:PAGE], after=after, more=more
    )


ROWS = (
    Row("GET", "/account/keys/{key_id}/revoke", revoke_page),
    Row(
        "POST", "/account/keys/{key_id}/revoke", revoke, again=revoke_page, review=review_revoke,
        steps_up=True,
    ),
    Row("GET", "/account/purchases", purchases),
)  # fmt: skip
