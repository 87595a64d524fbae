"""The person's own account: name, password, second factor, sessions, mails, keys, purchases. Registering a
key is `signerd`'s, beside the device.
"""

from pydantic import BaseModel
from starlette.responses import Response

from custody.schemas.auth import (
    CHANGE_PASSWORD,
    REVOKE_SESSIONS,
    SESSIONS,
    TOTP_CONFIRM,
    TOTP_ENROL,
    TWO_FACTOR,
)
from custody.schemas.common import Name
from custody.schemas.keys import KEYS, REVOKE_KEY, Key
from custody.schemas.mail_settings import MAIL_SETTINGS, UPDATE_MAIL_SETTINGS
from custody.schemas.purchases import PURCHASES
from custody.schemas.queries import QueryId
from custody.schemas.users import UPDATE_USER_INFO
from custody.server.console.identity import ACCOUNT, providers
from custody.server.console.sign_in import require_same_twice
from custody.server.console.table import Review, Row
from custody.server.console.visit import Visit, shaped
from custody.server.domain.errors import Invalid, NotFound
from custody.server.service.sign_in.passkeys import Assertion
from custody.server.sign_in import step_up
from custody.server.sign_in.second_factor import second_factor_of


class _PasskeyName(BaseModel):
    name: Name


class _Named(BaseModel):
    passkey_id: QueryId


def account(visit: Visit) -> Response:
    with visit.reading() as ctx:
        second_factor = second_factor_of(ctx.db, visit.caller.user_id)
        asks_code = second_factor != "none" and not step_up.is_fresh(ctx)
        keys = ctx.tools.passkeys
        # None where the platform offers none.
        passkeys = keys.of(ctx.db, visit.caller.user_id) if keys.are_offered else None
    return visit.page(
        "account/account.html",
        here="account",
        sessions=visit.ask(SESSIONS),
        mails=visit.ask(MAIL_SETTINGS),
        keys=visit.ask(KEYS),
        second_factor=second_factor,
        asks_code=asks_code,
        passkeys=passkeys,
        providers=providers(visit),
    )


def new_passkey(visit: Visit) -> Response:
    name = shaped(_PasskeyName, name=visit.form.one("name")).name
    with visit.writing() as ctx:
        offer = step_up.offer_passkey(ctx)
    return visit.page("account/passkey.html", here="account", name=name, offer=offer)


def passkey_made(visit: Visit) -> Response:
    name = shaped(_PasskeyName, name=visit.form.one("name")).name
    with visit.writing() as ctx:
        step_up.add_passkey(ctx, visit.form.one("token"), name, Assertion(visit.form.one("made")))
    return visit.go(ACCOUNT, f"The passkey {name} is added.")


def remove_passkey(visit: Visit) -> Response:
    named = shaped(_Named, passkey_id=visit.form.one("passkey_id"))
    with visit.writing() as ctx:
        step_up.remove_passkey(ctx, named.passkey_id)
    return visit.go(ACCOUNT, "The passkey is removed.")


def name(visit: Visit) -> Response:
    form = visit.form
    visit.act(
        UPDATE_USER_INFO,
        first_name=form.one("first_name"),
        surname=form.one("surname"),
        phone_number=form.one("phone_number") or None,
    )
    return visit.go(ACCOUNT, "Your name is changed.")


def password(visit: Visit) -> Response:
    form = visit.form
    require_same_twice(visit, "new_password")
    visit.act(CHANGE_PASSWORD, password=form.one("password"), new_password=form.one("new_password"))
    return visit.go(ACCOUNT, "Your password is changed, and your other sessions have ended.")


def second_factor(visit: Visit) -> Response:
    form = visit.form
    visit.act(TWO_FACTOR, method=form.one("method"), password=form.one("password"))
    return visit.go(ACCOUNT, "Your second factor is changed.")


def authenticator(visit: Visit) -> Response:
    """The secret is shown once, and takes effect when one of its codes is confirmed."""
    offered = visit.act(TOTP_ENROL, password=visit.form.one("password"))
    return visit.page("account/authenticator.html", here="account", offered=offered)


def confirm_authenticator(visit: Visit) -> Response:
    confirmed = visit.act(TOTP_CONFIRM, code=visit.form.one("code"))
    places = visit.places
    onward = f"{places[0].path}/" if len(places) == 1 else "/console/"
    codes = confirmed.recovery_codes
    return visit.page("account/recovery_codes.html", here="account", codes=codes, onward=onward)


def mistyped_code(visit: Visit) -> Response:
    """The secret that was shown still waits for a code."""
    return visit.page("account/authenticator.html", here="account", offered=None)


def end_sessions(visit: Visit) -> Response:
    named = visit.form.one("session_id") or None
    visit.act(REVOKE_SESSIONS, session_id=named, all_others=named is None)
    return visit.go(ACCOUNT, "The session has ended." if named else "All your other sessions have ended.")


def mails(visit: Visit) -> Response:
    form = visit.form
    visit.act(UPDATE_MAIL_SETTINGS, waiting=form.ticked("waiting"), amounts=form.ticked("amounts"))
    return visit.go(ACCOUNT, "Your mails are changed.")


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
    for key in visit.ask(KEYS):
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
    visit.act(REVOKE_KEY, key_id=_key(visit).id, reason=_reason(visit), force=visit.form.ticked("force"))
    return visit.go(ACCOUNT, "The key is revoked.")


def purchases(visit: Visit) -> Response:
    after = visit.query("after")
    found = visit.ask(PURCHASES, limit=PAGE + 1, after=after or None)
    more = visit.following(found, PAGE, "id")
    return visit.page(
        "account/purchases.html", here="account", purchases=found[:PAGE], after=after, more=more
    )


ROWS = (
    Row("POST", "/account/passkeys", new_passkey, again=account, steps_up=True),
    Row("POST", "/account/passkeys/made", passkey_made, again=account, steps_up=True),
    Row("POST", "/account/passkeys/remove", remove_passkey, again=account, steps_up=True),
    Row("GET", "/account", account),
    Row("POST", "/account/name", name, again=account, acts=(UPDATE_USER_INFO,)),
    Row("POST", "/account/password", password, again=account, acts=(CHANGE_PASSWORD,)),
    Row("POST", "/account/second-factor", second_factor, again=account, steps_up=True, acts=(TWO_FACTOR,)),
    Row("POST", "/account/authenticator", authenticator, again=account, steps_up=True, acts=(TOTP_ENROL,)),
    Row(
        "POST", "/account/authenticator/confirm", confirm_authenticator, again=mistyped_code,
        acts=(TOTP_CONFIRM,),
    ),
    Row("POST", "/account/sessions/end", end_sessions, again=account, acts=(REVOKE_SESSIONS,)),
    Row("POST", "/account/mails", mails, again=account, acts=(UPDATE_MAIL_SETTINGS,)),
    Row("GET", "/account/keys/{key_id}/revoke", revoke_page),
    Row(
        "POST", "/account/keys/{key_id}/revoke", revoke, again=revoke_page, review=review_revoke,
        steps_up=True, acts=(REVOKE_KEY,),
    ),
    Row("GET", "/account/purchases", purchases),
)  # fmt: skip
