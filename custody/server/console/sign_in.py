"""Signing in and out, registering, a new password: the pages that need no session."""

from urllib.parse import urlsplit

from starlette.responses import Response

from custody.schemas.auth import (
    LOGIN,
    LOGOUT,
    OTP_VALIDATE,
    REQUEST_PASSWORD_RESET,
    RESET_PASSWORD,
    LoginResponse,
    RegisterRequest,
)
from custody.server.console import session
from custody.server.console.context import PageContext, shaped
from custody.server.console.table import SIGN_IN, Row, form, own_path
from custody.server.errors import Invalid, SignInOver, Unauthenticated
from custody.server.people.invitations import invited_address
from custody.server.sign_in.accounts import register_account
from custody.server.sign_in.challenges import passkey_request
from custody.server.sign_in.passkeys import Assertion
from custody.server.sign_in.signing_in import another_code, finish_sign_in
from custody.server.sign_in.stored_providers import issuer_and_organisation

# As the owner's list of sessions shows it.
DEVICE = "Console"
_INVITATIONS = ("/invitations/", "/console/invitations/")


def sign_in_page(page: PageContext) -> Response:
    """With the organisation's identity provider where its code is given, or was typed last in this browser.
    Anyone can send a link with a code of their own: so the page names the organisation and its provider's
    host.

    An invitation's link leads to registering first, whether or not the address has an account: members see
    the link's id, and would learn that of any address (P39).
    """
    target, invited = target_of(page), _invited(page)
    if invited is not None and not page.query("account") and page.problem is None:
        return page.redirect(f"/console/register?next={target}")
    provider_id = page.query("organisation") or page.form.one("organisation")
    provider_id = provider_id or session.cookie(page.request, "organisation")
    with page.reading() as ctx:
        issuer, organisation = issuer_and_organisation(ctx.db, provider_id) or (None, None)
    return page.render(
        "sign_in.html",
        target=target,
        invited=invited,
        provider_id=provider_id,
        organisation=organisation,
        host=urlsplit(issuer or "").hostname,
    )


def _invited(page: PageContext) -> str | None:
    """The address of the open invitation whose link the person followed."""
    target = target_of(page)
    if not target.startswith(_INVITATIONS):
        return None
    with page.reading() as ctx:
        return invited_address(ctx.db, target.rpartition("/")[2], ctx.now)


def sign_in(page: PageContext) -> Response:
    return _sign_in(page, page.form.one("email"))


def _sign_in(page: PageContext, email: str) -> Response:
    answer = page.act(LOGIN, email=email, password=page.form.one("password"), device=DEVICE)
    if answer.requires_2fa:
        return _code_page(page, answer.two_factor_method or "email", answer.token_2fa)
    return _signed_in(page, answer)


def code_page(page: PageContext) -> Response:
    """After a wrong code: the same challenge while it takes another; then a link to start again."""
    return _code_page(page, page.form.one("method"), page.form.one("token"))


def _code_page(page: PageContext, method: str, token: str, *, is_another: bool = False) -> Response:
    with page.reading() as ctx:
        passkey = passkey_request(ctx, token)
    return page.render(
        "code.html",
        target=target_of(page),
        method=method,
        token=token,
        passkey=passkey,
        is_another=is_another,
        is_over=isinstance(page.problem, SignInOver),
    )


def code(page: PageContext) -> Response:
    form, token = page.form, page.form.one("token")
    if form.ticked("another_code"):
        page.admit()
        awaited = page.make_in_parts(another_code(token))
        return _code_page(page, awaited.method, awaited.token_2fa, is_another=True)
    if assertion := form.one("assertion"):
        page.admit()
        return _signed_in(page, page.make_in_parts(finish_sign_in(token, Assertion(assertion))))
    return _signed_in(page, page.act(OTP_VALIDATE, token_2fa=token, otp=form.one("otp")))


def _signed_in(page: PageContext, answer: LoginResponse) -> Response:
    response = page.redirect(target_of(page))
    session.BrowserSession(answer.token, answer.sid, answer.refresh_token).keep(page.request, response)
    return response


def sign_out(page: PageContext) -> Response:
    page.act(LOGOUT)
    page.held = None
    response = page.redirect(SIGN_IN, "You are signed out.")
    session.forget(page.request, response)
    return response


def register_page(page: PageContext) -> Response:
    return page.render("register.html", target=target_of(page), invited=_invited(page))


def register(page: PageContext) -> Response:
    page.admit()
    form = page.form
    require_same_twice(page, "password")
    invited = _invited(page)
    email = form.one("email") if invited is None else invited
    taken = shaped(
        RegisterRequest,
        email=email,
        password=form.one("password"),
        first_name=form.one("first_name") or None,
        surname=form.one("surname") or None,
    )
    page.make_in_parts(register_account(taken, is_signing_in=True))
    try:
        return _sign_in(page, email)
    except Unauthenticated:
        # The address has an account, or none may be made: the mail says which. The answer tells no more than
        # signing in does.
        return page.redirect(
            f"{SIGN_IN}?account=yes&next={target_of(page)}",
            "A mail to this address says what to do. Then sign in.",
        )


def forgotten_page(page: PageContext) -> Response:
    return page.render("forgotten.html")


def reset_page(page: PageContext) -> Response:
    return page.render("reset.html")


def _new_password(page: PageContext) -> dict[str, str]:
    require_same_twice(page, "new_password")
    return {"token": page.form.one("token").strip()}


def require_same_twice(page: PageContext, name: str) -> None:
    if page.form.one(name) != page.form.one("again"):
        raise Invalid.at("/again", "The two passwords differ.")


def target_of(page: PageContext) -> str:
    return own_path(page.form.one("next") or page.query("next"))


ROWS = (
    Row("GET", "/sign-in", sign_in_page, is_open=True),
    Row("POST", "/sign-in", sign_in, again=sign_in_page, is_open=True, acts=(LOGIN,)),
    Row("POST", "/sign-in/code", code, again=code_page, is_open=True, acts=(OTP_VALIDATE,)),
    Row("POST", "/sign-out", sign_out, acts=(LOGOUT,)),
    Row("GET", "/register", register_page, is_open=True),
    Row("POST", "/register", register, again=register_page, is_open=True, acts=(LOGIN,)),
    Row("GET", "/forgotten-password", forgotten_page, is_open=True),
    form(
        "/forgotten-password", REQUEST_PASSWORD_RESET, forgotten_page,
        "If this address has an account, a mail with a token is on its way.", to="/console/reset-password",
        is_open=True,
    ),
    Row("GET", "/reset-password", reset_page, is_open=True),
    form(
        "/reset-password", RESET_PASSWORD, reset_page,
        "Your password is changed, and every session has ended. Sign in with the new one.", to=SIGN_IN,
        is_open=True, given=_new_password,
    ),
)  # fmt: skip
