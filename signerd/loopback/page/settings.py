"""What this machine was told to do, and the account at the platform. Nothing of the configuration is changed here."""

from http import HTTPStatus

from starlette.responses import Response

from signerd import shapes
from signerd.loopback.page import rendering
from signerd.loopback.page.rendering import Live
from signerd.loopback.page.request import PageRequest, Row, shaped

ACCOUNT = Live("account", "settings/account.html", "/settings/account")
# The same part while a code is waited for.
CODE = Live("account", "settings/account.html", "/settings/account?code=1")


async def settings(asked: PageRequest) -> Response:
    shown = await asked.service.settings.shown()
    return await asked.page(
        "settings/settings.html",
        title="Settings",
        here="/settings",
        settings=shown,
        account_part=ACCOUNT,
        code_for=None,
    )


async def account(asked: PageRequest) -> Response:
    status = await asked.service.status()
    if asked.query("code") and not status.signed_in:
        # A code is being typed: only that it is over is news.
        return rendering.answer("", HTTPStatus.NO_CONTENT)
    return asked.part(ACCOUNT, status=status, code_for=None)


async def sign_in(asked: PageRequest) -> Response:
    fields = await asked.fields()
    said = shaped(shapes.SignInRequest, email=fields.one("email").strip(), password=fields.one("password"))
    found = await asked.service.sign_in(said.email, said.password)
    return await _account(asked, code_for=found.email if found.code_needed else None)


async def confirm(asked: PageRequest) -> Response:
    fields = await asked.fields()
    said = shaped(shapes.CodeRequest, code=fields.one("code"))
    await asked.service.confirm_sign_in(said.code)
    return await _account(asked)


async def sign_out(asked: PageRequest) -> Response:
    await asked.service.sign_out()
    return await _account(asked)


async def _account(asked: PageRequest, code_for: str | None = None) -> Response:
    live = ACCOUNT if code_for is None else CODE
    return asked.part(live, status=await asked.service.status(), code_for=code_for)


async def help_page(asked: PageRequest) -> Response:
    return await asked.page("help.html", title="Help", here="/help")


ROWS = (
    Row("GET", "/settings", settings),
    Row("GET", "/settings/account", account),
    Row("POST", "/settings/sign-in", sign_in),
    Row("POST", "/settings/code", confirm),
    Row("POST", "/settings/sign-out", sign_out),
    Row("GET", "/help", help_page),
)
