"""Signing in and out, registering, a new password: the pages that need no session; and an organisation's
identity provider: signing in through it, linking an account to it, and its settings.
"""

from contextlib import suppress
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

from starlette.responses import Response

from custody.schemas import auth as wire
from custody.schemas.identity_providers import (
    IDENTITY_LINKS,
    IDENTITY_PROVIDER,
    REMOVE_IDENTITY_PROVIDER,
    UNLINK_IDENTITY,
    UPDATE_IDENTITY_PROVIDER,
    UPDATE_IDENTITY_PROVIDER_SECRET,
    IdentityProvider,
)
from custody.schemas.users import Organisation
from custody.server.console import session
from custody.server.console.context import PageContext, shaped
from custody.server.console.reviews import Review
from custody.server.console.table import SIGN_IN, Row, form, own_path, template_view
from custody.server.errors import Invalid, SignInOver, StateConflict, TokenExpired, Unauthenticated
from custody.server.people.invitations import invited_address
from custody.server.rules.credentials import IDENTITY_FLOW_LIFETIME
from custody.server.sign_in import identity_providers
from custody.server.sign_in.accounts import register_account
from custody.server.sign_in.challenges import CodeAwaited, beside_code
from custody.server.sign_in.identity_providers import (
    ProviderCallback,
    ProviderRedirect,
    issuer_and_organisation,
)
from custody.server.sign_in.passkeys import Assertion
from custody.server.sign_in.sessions import another_code, finish_sign_in
from custody.server.web.http import set_cookie

# As the owner's list of sessions shows it.
DEVICE = "Console"
ACCOUNT: Final = "/console/account"
# How long a browser offers the provider whose code was typed last.
REMEMBERED: Final = timedelta(days=365)
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


def sign_in(page: PageContext, email: str = "") -> Response:
    """``email``: where the form has none."""
    form = page.form
    answer = page.act(
        wire.LOGIN, email=email or form.one("email"), password=form.one("password"), device=DEVICE
    )
    if answer.requires_2fa:
        return code_page(page, CodeAwaited(answer.token_2fa, answer.two_factor_method or "email"))
    return _signed_in(page, answer)


def code_page(page: PageContext, awaited: CodeAwaited | None = None) -> Response:
    """``awaited``: None after a wrong code: the same challenge while it takes another; then a link to start
    again.
    """
    form = page.form
    token = form.one("token") if awaited is None else awaited.token_2fa
    with page.reading() as ctx:
        passkey, time = beside_code(ctx, token)
    return page.render(
        "code.html",
        target=target_of(page),
        method=form.one("method") if awaited is None else awaited.method,
        token=token,
        passkey=passkey,
        time=time,
        is_another=awaited is not None and form.ticked("another_code"),
        is_over=isinstance(page.problem, SignInOver),
    )


def code(page: PageContext) -> Response:
    form, token = page.form, page.form.one("token")
    if form.ticked("another_code"):
        page.admit()
        return code_page(page, page.make_in_parts(another_code(token)))
    if assertion := form.one("assertion"):
        page.admit()
        return _signed_in(page, page.make_in_parts(finish_sign_in(token, Assertion(assertion))))
    return _signed_in(page, page.act(wire.OTP_VALIDATE, token_2fa=token, otp=form.one("otp")))


def _signed_in(page: PageContext, answer: wire.LoginResponse) -> Response:
    page.held = session.BrowserSession(answer.token, answer.sid, answer.refresh_token)
    return page.redirect(target_of(page))


def sign_out(page: PageContext) -> Response:
    page.act(wire.LOGOUT)
    page.held = None
    response = page.redirect(SIGN_IN, "You are signed out.")
    set_cookie(page.request, response, "session")
    return response


def register(page: PageContext) -> Response:
    page.admit()
    form = page.form
    require_same_twice(page, "password")
    invited = _invited(page)
    email = form.one("email") if invited is None else invited
    taken = shaped(
        wire.RegisterRequest,
        email=email,
        password=form.one("password"),
        first_name=form.one("first_name") or None,
        surname=form.one("surname") or None,
    )
    page.make_in_parts(register_account(taken, is_signing_in=True))
    try:
        return sign_in(page, email)
    except Unauthenticated:
        # The address has an account, or none may be made: the mail says which. The answer tells no more than
        # signing in does.
        return page.redirect(
            f"{SIGN_IN}?account=yes&next={target_of(page)}",
            "A mail to this address says what to do. Then sign in.",
        )


def _new_password(page: PageContext) -> dict[str, str]:
    require_same_twice(page, "new_password")
    return {"token": page.form.one("token").strip()}


def require_same_twice(page: PageContext, name: str) -> None:
    if page.form.one(name) != page.form.one("again"):
        raise Invalid.at("/again", "The two passwords differ.")


def target_of(page: PageContext) -> str:
    return own_path(page.form.one("next") or page.query("next"))


register_page = template_view("register.html", target=target_of, invited=_invited)
forgotten_page = template_view("forgotten.html")
reset_page = template_view("reset.html")


# --- through an identity provider ---------------------------------------------------------------------------


def begin(page: PageContext) -> Response:
    """Raises StateConflict for a person who is signed in: the provider's session would replace theirs, and
    the request that comes back from the provider does not carry it (`SameSite=Strict`).
    """
    page.admit()
    if page.held is not None:
        with suppress(Unauthenticated, TokenExpired):
            _, page.held = session.authenticate(page.services, page.request, page.held, page.snapshot)
            words = "You are signed in already. Sign out first, then sign in through your organisation."
            raise StateConflict(words)
    provider_id = page.form.one("organisation").strip()
    is_typed = page.form.ticked("typed") or provider_id == session.cookie(page.request, "organisation")
    leaving = page.make_in_parts(identity_providers.begin(provider_id, target_of(page)))
    return _leave(page, leaving, provider_id if is_typed else "")


def _leave(page: PageContext, leaving: ProviderRedirect, provider_id: str) -> Response:
    """Through a page of ours: a form may not submit elsewhere. ``provider_id``: what the browser remembers
    afterwards; empty for a code that a link contained.
    """
    response = page.render("identity/onward.html", url=leaving.url, words=f"You go on to {leaving.issuer}.")
    value = f"{leaving.token}.{provider_id}"
    set_cookie(page.request, response, "leaving", value, IDENTITY_FLOW_LIFETIME, same_site="lax")
    return response


def callback(page: PageContext) -> Response:
    """Through a page of ours again: a request that another site caused carries no session."""
    page.admit()
    token, _, provider_id = session.cookie(page.request, "leaving").partition(".")
    back = ProviderCallback(page.query("state"), page.query("code"), page.query("error"), page.query("iss"))
    organisation_id = page.path_param("organisation_id")
    target, tokens = page.make_in_parts(identity_providers.finish(organisation_id, token, back))
    words = "Your account is linked." if tokens is None else "You are signed in."
    response = page.render("identity/onward.html", url=target, words=words)
    set_cookie(page.request, response, "leaving")
    if provider_id:
        set_cookie(page.request, response, "organisation", provider_id, REMEMBERED, same_site="lax")
    if tokens is not None:
        page.held = session.BrowserSession(tokens.token, tokens.sid, tokens.refresh_token)
    return response


# --- one's own link -----------------------------------------------------------------------------------------


def _own_workspace(page: PageContext) -> int:
    """The workspace that the form names. Raises Invalid where the person is not in it."""
    wanted = page.number("workspace_id")
    if any(each.id == wanted for each in page.workspaces):
        return wanted
    raise Invalid.at("/workspace_id", "You are in no such workspace.")


def link(page: PageContext) -> Response:
    provider = page.read(IDENTITY_PROVIDER, workspace_id=_own_workspace(page))
    provider_id = provider.provider_id or ""
    leaving = page.make_in_parts(identity_providers.begin(provider_id, ACCOUNT, is_linking=True))
    return _leave(page, leaving, provider_id)


def providers(page: PageContext) -> list[tuple[Organisation, int, IdentityProvider]]:
    """Of the person's organisations, each with one of its workspaces."""
    configured = []
    for organisation in page.user.organisations_info.organisations:
        workspace_id = organisation.workspaces.workspaces[0].workspace_info.uid
        provider = page.read(IDENTITY_PROVIDER, workspace_id=workspace_id)
        if provider.has_secret:
            configured.append((organisation, workspace_id, provider))
    return configured


def unlink(page: PageContext) -> Response:
    page.act(UNLINK_IDENTITY, workspace_id=_own_workspace(page))
    return page.redirect(ACCOUNT, "The identity provider no longer signs you in.")


# --- the organisation's -------------------------------------------------------------------------------------


provider_page = template_view("identity/provider.html", provider=IDENTITY_PROVIDER, links=IDENTITY_LINKS)


def review_unlinking(page: PageContext) -> Review:
    wanted = page.number("user_uuid")
    for each in page.read(IDENTITY_LINKS):
        if each.user_uuid == wanted:
            facts = (("Member", each.email),)
            warning = "Sessions through the link end. Their programs continue: revoke them under Programs."
            return Review("Unlink this member?", facts, "Unlink", warning)
    raise Invalid.at("/user_uuid", "Choose one of the list.")


_PROVIDER = "/w/{workspace_id:int}/identity"


ROWS = (
    Row("POST", "/sign-in", sign_in, again=sign_in_page, has_page=True, is_open=True, acts=(wire.LOGIN,)),
    Row("POST", "/sign-in/code", code, again=code_page, is_open=True, acts=(wire.OTP_VALIDATE,)),
    Row("POST", "/sign-out", sign_out, acts=(wire.LOGOUT,)),
    Row("POST", "/register", register, again=register_page, has_page=True, is_open=True, acts=(wire.LOGIN,)),
    form(
        "/forgotten-password", wire.REQUEST_PASSWORD_RESET, forgotten_page,
        "If this address has an account, a mail with a token is on its way.", to="/console/reset-password",
        is_open=True, has_page=True,
    ),
    form(
        "/reset-password", wire.RESET_PASSWORD, reset_page,
        "Your password is changed, and every session has ended. Sign in with the new one.", to=SIGN_IN,
        is_open=True, given=_new_password, has_page=True,
    ),
    Row("POST", "/sign-in/organisation", begin, again=sign_in_page, is_open=True),
    Row("GET", "/sign-in/organisation/callback/{organisation_id:int}", callback, is_open=True),
    Row("POST", "/account/identity/link", link, steps_up=True),
    Row("POST", "/account/identity/unlink", unlink, steps_up=True, acts=(UNLINK_IDENTITY,)),
    Row("GET", _PROVIDER, provider_page),
    form(
        _PROVIDER + "/set", UPDATE_IDENTITY_PROVIDER, provider_page, "The identity provider is set.",
        asks="Set it",
        given=lambda page: {name: page.form.one(name).strip() for name in ("issuer", "client_id")},
        warns="Another issuer or client is another provider: links and sessions of the current one end.",
    ),
    form(
        _PROVIDER + "/secret", UPDATE_IDENTITY_PROVIDER_SECRET, provider_page,
        "The secret is kept, and never shown again.", steps_up=True,
        given=lambda page: {"client_secret": page.form.one("client_secret").strip()},
    ),
    form(
        _PROVIDER + "/remove", REMOVE_IDENTITY_PROVIDER, provider_page, "The identity provider is removed.",
        asks="Remove",
        warns="Its sessions and links end. Members sign in with their own passwords from then on.",
    ),
    form(
        _PROVIDER + "/unlink", UNLINK_IDENTITY, provider_page,
        "The member is unlinked. Their programs continue.", review=review_unlinking, steps_up=True,
    ),
)  # fmt: skip
