"""The person's own account: name, password, second factor, sessions, mails, keys, purchases. Registering a
key is `signerd`'s, beside the device.
"""

from pydantic import BaseModel
from starlette.responses import Response

from custody.schemas import auth as wire
from custody.schemas.common import Name
from custody.schemas.keys import KEYS, REVOKE_KEY
from custody.schemas.purchases import PURCHASES
from custody.schemas.users import MAIL_SETTINGS, UPDATE_MAIL_SETTINGS, UPDATE_USER_INFO
from custody.server.console.context import PageContext, shaped
from custody.server.console.reviews import Review
from custody.server.console.sign_in import ACCOUNT, providers, require_same_twice
from custody.server.console.table import Row, entry_of, form, template_view
from custody.server.errors import Invalid
from custody.server.sign_in import challenges
from custody.server.sign_in.passkeys import Assertion, are_offered, passkeys_of
from custody.server.sign_in.second_factor import second_factor_of


class _PasskeyName(BaseModel):
    name: Name


def account(page: PageContext) -> Response:
    with page.reading() as ctx:
        second_factor = second_factor_of(ctx.db, page.caller.user_id)
        asks_code = second_factor != "none" and not challenges.is_fresh(ctx)
        # None where the platform offers none.
        passkeys = passkeys_of(ctx, page.caller.user_id) if are_offered(ctx) else None
    return page.render(
        "account/account.html",
        sessions=page.read(wire.SESSIONS),
        mails=page.read(MAIL_SETTINGS),
        keys=page.read(KEYS),
        second_factor=second_factor,
        asks_code=asks_code,
        passkeys=passkeys,
        providers=providers(page),
    )


def new_passkey(page: PageContext) -> Response:
    name = shaped(_PasskeyName, name=page.form.one("name")).name
    with page.writing() as ctx:
        offer = challenges.offer_passkey(ctx)
    return page.render("account/passkey.html", name=name, offer=offer)


def passkey_made(page: PageContext) -> Response:
    name = shaped(_PasskeyName, name=page.form.one("name")).name
    with page.writing() as ctx:
        challenges.add_passkey(ctx, page.form.one("token"), name, Assertion(page.form.one("made")))
    return page.redirect(ACCOUNT, f"The passkey {name} is added. Signing in asks for it, or for a code.")


def remove_passkey(page: PageContext) -> Response:
    with page.writing() as ctx:
        challenges.remove_passkey(ctx, page.number("passkey_id"))
    return page.redirect(ACCOUNT, "The passkey is removed.")


def _new_password(page: PageContext) -> dict[str, str]:
    require_same_twice(page, "new_password")
    return {}


def confirm_authenticator(page: PageContext) -> Response:
    confirmed = page.act(wire.TOTP_CONFIRM, code=page.form.one("code"))
    workspaces = page.workspaces
    onward = f"{workspaces[0].path}/" if len(workspaces) == 1 else "/console/"
    codes = confirmed.recovery_codes
    return page.render("account/recovery_codes.html", codes=codes, onward=onward)


# After a mistyped code: the secret that was shown still waits for one.
mistyped_code = template_view("account/authenticator.html", shown=None)


def end_sessions(page: PageContext) -> Response:
    named = page.form.one("session_id") or None
    page.act(wire.REVOKE_SESSIONS, session_id=named, all_others=named is None)
    return page.redirect(
        ACCOUNT, "The session has ended." if named else "All your other sessions have ended."
    )


REASONS = {
    "superseded": "another device replaced it; I still have the old one",
    "lost": "it is lost: I do not know who has it",
}
_MEANS = {
    "superseded": "It approves only moves between a workspace's own vaults, so that coins can be moved on.",
    "lost": "It approves nothing any more. Its approvals of pending proposals no longer count.",
}


_key = entry_of(KEYS, "id", "You have no such key.", name="key_id")
revoke_page = template_view("account/revoke.html", key=_key, reasons=REASONS)


def _reason(page: PageContext) -> str:
    reason = page.form.one("reason")
    if reason not in REASONS:
        raise Invalid.at("/reason", "Choose a reason.")
    return reason


def review_revoke(page: PageContext) -> Review:
    key, reason = _key(page), _reason(page)
    forced = (
        (("Even where a vault is left with too few signers", "yes"),) if page.form.ticked("force") else ()
    )
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


purchases = template_view("account/purchases.html", purchases=lambda page: page.read_page(PURCHASES))


ROWS = (
    Row("POST", "/account/passkeys", new_passkey, again=account, steps_up=True),
    Row("POST", "/account/passkeys/made", passkey_made, again=account, steps_up=True),
    Row("POST", "/account/passkeys/remove", remove_passkey, again=account, steps_up=True),
    Row("GET", "/account", account),
    form(
        "/account/name", UPDATE_USER_INFO, account, "Your name is changed.", optional=("phone_number",)
    ),
    form(
        "/account/password", wire.CHANGE_PASSWORD, account,
        "Your password is changed, and your other sessions have ended.", given=_new_password,
    ),
    form(
        "/account/second-factor", wire.TWO_FACTOR, account, "Your second factor is changed.", steps_up=True,
        given=lambda _page: {"enabled": None},
    ),
    # The secret takes effect when one of its codes is confirmed.
    form(
        "/account/authenticator", wire.TOTP_ENROL, account, "", steps_up=True,
        shows="account/authenticator.html",
    ),
    Row(
        "POST", "/account/authenticator/confirm", confirm_authenticator, again=mistyped_code,
        acts=(wire.TOTP_CONFIRM,),
    ),
    Row("POST", "/account/sessions/end", end_sessions, again=account, acts=(wire.REVOKE_SESSIONS,)),
    form("/account/mails", UPDATE_MAIL_SETTINGS, account, "Your mails are changed."),
    form(
        "/account/keys/{key_id}/revoke", REVOKE_KEY, revoke_page, "The key is revoked.", to=ACCOUNT,
        review=review_revoke, given=lambda page: {"reason": _reason(page)}, has_page=True,
    ),
    Row("GET", "/account/purchases", purchases),
)  # fmt: skip
