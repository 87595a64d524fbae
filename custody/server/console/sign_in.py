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
from custody.server.console.table import SIGN_IN, Row, own_path
from custody.server.console.visit import Visit, shaped
from custody.server.domain.errors import Invalid, SignInOver, Unauthenticated
from custody.server.invitations import invited_address
from custody.server.service.sign_in.identity import issuer_and_organisation
from custody.server.service.sign_in.passkeys import Assertion
from custody.server.sign_in.accounts import register_account
from custody.server.sign_in.challenges import passkey_request
from custody.server.sign_in.signing_in import another_code, finish_sign_in

# As the owner's list of sessions shows it.
DEVICE = "Console"
_INVITATIONS = ("/invitations/", "/console/invitations/")


def sign_in_page(visit: Visit) -> Response:
    """With the organisation's identity provider where its code is given, or was typed last in this browser.
    Anyone can send a link with a code of their own: so the page names the organisation and its provider's
    host.

    An invitation's link leads to registering first, whether or not the address has an account: members see
    the link's id, and would learn that of any address (P39).
    """
    target, invited = target_of(visit), _invited(visit)
    if invited is not None and not visit.query("account") and visit.problem is None:
        return visit.go(f"/console/register?next={target}")
    provider_id = visit.query("organisation") or visit.form.one("organisation")
    provider_id = provider_id or session.cookie(visit.request, "organisation")
    with visit.reading() as ctx:
        issuer, organisation = issuer_and_organisation(ctx.db, provider_id) or (None, None)
    return visit.page(
        "sign_in.html",
        target=target,
        invited=invited,
        provider_id=provider_id,
        organisation=organisation,
        host=urlsplit(issuer or "").hostname,
    )


def _invited(visit: Visit) -> str | None:
    """The address of the open invitation whose link the person followed."""
    target = target_of(visit)
    if not target.startswith(_INVITATIONS):
        return None
    with visit.reading() as ctx:
        return invited_address(ctx.db, target.rpartition("/")[2], ctx.now)


def sign_in(visit: Visit) -> Response:
    return _sign_in(visit, visit.form.one("email"))


def _sign_in(visit: Visit, email: str) -> Response:
    answer = visit.act(LOGIN, email=email, password=visit.form.one("password"), device=DEVICE)
    if answer.requires_2fa:
        return _code_page(visit, answer.two_factor_method or "email", answer.token_2fa)
    return _signed_in(visit, answer)


def code_page(visit: Visit) -> Response:
    """After a wrong code: the same challenge while it takes another; then a link to start again."""
    return _code_page(visit, visit.form.one("method"), visit.form.one("token"))


def _code_page(visit: Visit, method: str, token: str, *, is_another: bool = False) -> Response:
    with visit.reading() as ctx:
        passkey = passkey_request(ctx, token)
    return visit.page(
        "code.html",
        target=target_of(visit),
        method=method,
        token=token,
        passkey=passkey,
        is_another=is_another,
        is_over=isinstance(visit.problem, SignInOver),
    )


def code(visit: Visit) -> Response:
    form, token = visit.form, visit.form.one("token")
    if form.ticked("another_code"):
        visit.admit()
        awaited = visit.make_in_parts(another_code(token))
        return _code_page(visit, awaited.method, awaited.token_2fa, is_another=True)
    if assertion := form.one("assertion"):
        visit.admit()
        return _signed_in(visit, visit.make_in_parts(finish_sign_in(token, Assertion(assertion))))
    return _signed_in(visit, visit.act(OTP_VALIDATE, token_2fa=token, otp=form.one("otp")))


def _signed_in(visit: Visit, answer: LoginResponse) -> Response:
    response = visit.go(target_of(visit))
    session.BrowserSession(answer.token, answer.sid, answer.refresh_token).keep(visit.request, response)
    return response


def sign_out(visit: Visit) -> Response:
    visit.act(LOGOUT)
    visit.held = None
    response = visit.go(SIGN_IN, "You are signed out.")
    session.forget(visit.request, response)
    return response


def register_page(visit: Visit) -> Response:
    return visit.page("register.html", target=target_of(visit), invited=_invited(visit))


def register(visit: Visit) -> Response:
    visit.admit()
    form = visit.form
    require_same_twice(visit, "password")
    invited = _invited(visit)
    email = form.one("email") if invited is None else invited
    taken = shaped(
        RegisterRequest,
        email=email,
        password=form.one("password"),
        first_name=form.one("first_name") or None,
        surname=form.one("surname") or None,
    )
    visit.make_in_parts(register_account(taken, is_signing_in=True))
    try:
        return _sign_in(visit, email)
    except Unauthenticated:
        # The address has an account, or none may be made: the mail says which. The answer tells no more than
        # signing in does.
        return visit.go(
            f"{SIGN_IN}?account=yes&next={target_of(visit)}",
            "A mail to this address says what to do. Then sign in.",
        )


def forgotten_page(visit: Visit) -> Response:
    return visit.page("forgotten.html")


def forgotten(visit: Visit) -> Response:
    visit.act(REQUEST_PASSWORD_RESET, email=visit.form.one("email"))
    return visit.go(
        "/console/reset-password", "If this address has an account, a mail with a token is on its way."
    )


def reset_page(visit: Visit) -> Response:
    return visit.page("reset.html")


def reset(visit: Visit) -> Response:
    form = visit.form
    require_same_twice(visit, "new_password")
    visit.act(RESET_PASSWORD, token=form.one("token").strip(), new_password=form.one("new_password"))
    return visit.go(
        SIGN_IN, "Your password is changed, and every session has ended. Sign in with the new one."
    )


def require_same_twice(visit: Visit, name: str) -> None:
    if visit.form.one(name) != visit.form.one("again"):
        raise Invalid.at("/again", "The two passwords differ.")


def target_of(visit: Visit) -> str:
    return own_path(visit.form.one("next") or visit.query("next"))


ROWS = (
    Row("GET", "/sign-in", sign_in_page, is_open=True),
    Row("POST", "/sign-in", sign_in, again=sign_in_page, is_open=True, acts=(LOGIN,)),
    Row("POST", "/sign-in/code", code, again=code_page, is_open=True, acts=(OTP_VALIDATE,)),
    Row("POST", "/sign-out", sign_out, acts=(LOGOUT,)),
    Row("GET", "/register", register_page, is_open=True),
    Row("POST", "/register", register, again=register_page, is_open=True, acts=(LOGIN,)),
    Row("GET", "/forgotten-password", forgotten_page, is_open=True),
    Row(
        "POST", "/forgotten-password", forgotten, again=forgotten_page, is_open=True,
        acts=(REQUEST_PASSWORD_RESET,),
    ),
    Row("GET", "/reset-password", reset_page, is_open=True),
    Row("POST", "/reset-password", reset, again=reset_page, is_open=True, acts=(RESET_PASSWORD,)),
)  # fmt: skip
