"""Signing in and out, registering, a new password: the pages that need no session."""

from urllib.parse import urlsplit

from starlette.responses import Response

from custody.schemas.auth import (
    LoginRequest,
    OtpValidateRequest,
    PasswordResetRequest,
    RegisterRequest,
    ResetPasswordRequest,
)
from custody.server.console import session
from custody.server.console.table import SIGN_IN, Row, own_path
from custody.server.console.visit import Visit, shaped
from custody.server.domain.errors import Invalid, SignInOver, Unauthenticated
from custody.server.invitations import invited_address
from custody.server.service.sign_in.identity import organisation_of
from custody.server.service.sign_in.passkeys import Assertion
from custody.server.service.sign_in.signin import CodeAwaited, SignedIn
from custody.server.web.endpoint import address_of
from custody.server.web.problems import trace_id_of

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
    issuer = visit.services.account.identity.issuer(provider_id) if provider_id else None
    with visit.services.store.read() as db:
        organisation = organisation_of(db, provider_id) if issuer else None
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
    with visit.services.store.read() as db:
        return invited_address(db, target.rpartition("/")[2], visit.services.tools.clock())


def sign_in(visit: Visit) -> Response:
    admit(visit)
    return _sign_in(visit, visit.form.one("email"))


def _sign_in(visit: Visit, email: str) -> Response:
    taken = shaped(LoginRequest, email=email, password=visit.form.one("password"), device=DEVICE)
    result = visit.services.signin.login(taken, address_of(visit.request), trace_id_of(visit.request))
    if isinstance(result, CodeAwaited):
        return _code_page(visit, result.method, result.token_2fa, result.passkey)
    return _signed_in(visit, result)


def code_page(visit: Visit) -> Response:
    """After a wrong code: the same challenge while it takes another; then a link to start again."""
    form = visit.form
    return _code_page(visit, form.one("method"), form.one("token"), form.one("passkey"))


def _code_page(visit: Visit, method: str, token: str, passkey: str, *, is_another: bool = False) -> Response:
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
    admit(visit)
    if visit.form.ticked("another_code"):
        awaited = visit.services.signin.another_code(visit.form.one("token"))
        return _code_page(visit, awaited.method, awaited.token_2fa, awaited.passkey, is_another=True)
    signin, form, trace_id = visit.services.signin, visit.form, trace_id_of(visit.request)
    if assertion := form.one("assertion"):
        return _signed_in(visit, signin.validate_code(form.one("token"), Assertion(assertion), trace_id))
    taken = shaped(OtpValidateRequest, token_2fa=form.one("token"), otp=form.one("otp"))
    return _signed_in(visit, signin.validate_code(taken.token_2fa, taken.otp, trace_id))


def _signed_in(visit: Visit, result: SignedIn) -> Response:
    response = visit.go(target_of(visit))
    session.BrowserSession.of(result.tokens).keep(visit.request, response)
    return response


def sign_out(visit: Visit) -> Response:
    visit.services.sessions.close(visit.caller)
    visit.held = None
    response = visit.go(SIGN_IN, "You are signed out.")
    session.forget(visit.request, response)
    return response


def register_page(visit: Visit) -> Response:
    return visit.page("register.html", target=target_of(visit), invited=_invited(visit))


def register(visit: Visit) -> Response:
    admit(visit)
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
    visit.services.account.accounts.register(taken, trace_id_of(visit.request), is_signing_in=True)
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
    admit(visit)
    taken = shaped(PasswordResetRequest, email=visit.form.one("email"))
    visit.services.account.password_changes.request_reset(taken.email, trace_id_of(visit.request))
    return visit.go(
        "/console/reset-password", "If this address has an account, a mail with a token is on its way."
    )


def reset_page(visit: Visit) -> Response:
    return visit.page("reset.html")


def reset(visit: Visit) -> Response:
    admit(visit)
    form = visit.form
    require_same_twice(visit, "new_password")
    taken = shaped(
        ResetPasswordRequest, token=form.one("token").strip(), new_password=form.one("new_password")
    )
    visit.services.account.password_changes.reset(
        taken.token,
        taken.new_password.get_secret_value(),
        trace_id_of(visit.request),
        address_of(visit.request),
    )
    return visit.go(
        SIGN_IN, "Your password is changed, and every session has ended. Sign in with the new one."
    )


def require_same_twice(visit: Visit, name: str) -> None:
    if visit.form.one(name) != visit.form.one("again"):
        raise Invalid.at("/again", "The two passwords differ.")


def admit(visit: Visit) -> None:
    visit.services.signin.admit(address_of(visit.request))


def target_of(visit: Visit) -> str:
    return own_path(visit.form.one("next") or visit.query("next"))


ROWS = (
    Row("GET", "/sign-in", sign_in_page, is_open=True),
    Row("POST", "/sign-in", sign_in, again=sign_in_page, is_open=True),
    Row("POST", "/sign-in/code", code, again=code_page, is_open=True),
    Row("POST", "/sign-out", sign_out),
    Row("GET", "/register", register_page, is_open=True),
    Row("POST", "/register", register, again=register_page, is_open=True),
    Row("GET", "/forgotten-password", forgotten_page, is_open=True),
    Row("POST", "/forgotten-password", forgotten, again=forgotten_page, is_open=True),
    Row("GET", "/reset-password", reset_page, is_open=True),
    Row("POST", "/reset-password", reset, again=reset_page, is_open=True),
)
