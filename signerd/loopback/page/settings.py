"""The settings, the account, the history, and the apps: pairing requests, paired apps and origins."""

import contextlib
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from custody.common.pages.rendering import Fields, Live
from signerd.account.vaults import seen_vaults
from signerd.api.account import AccountApi
from signerd.api.apps import AppsApi
from signerd.callers import RIGHT_WORDS, granted
from signerd.daemon import editing
from signerd.errors import ConfigInvalid, InvalidRequest, RulesInvalid
from signerd.journal.books import CAUGHT_UP
from signerd.loopback.page import rendering
from signerd.loopback.page.rendering import PageRequest, PageRoute, act, act_on, fragment, page, part
from signerd.shapes import AuditEntryView, SignedIn
from signerd.shapes.limits import DAYS, MAX_DAYS

ACCOUNT = Live("account", "settings/account.html", "/settings/account")
# The same part while it waits for a one-time code.
CODE = Live("account", "settings/account.html", "/settings/account?code=1")


async def _settings(request: PageRequest) -> dict[str, Any]:
    return {"settings": await request.service.settings(), "account_part": ACCOUNT, "code_for": None}


async def _files(request: PageRequest) -> dict[str, Any]:
    return {"files": editing.files(request.service)}


# What fits into a form within the guard's 64 KiB, where a character that is no letter or digit takes three
# bytes.
MAX_SETTINGS_TEXT = 20_000


def _edited(fields: Fields) -> tuple[str, str, str]:
    """The file's name, the new text, the digest of the old one. Raises InvalidRequest."""
    text = fields.one("text")
    if len(text) > MAX_SETTINGS_TEXT:
        raise InvalidRequest(
            f"the page takes up to {MAX_SETTINGS_TEXT:,} characters", hint="Change the file itself."
        )
    return fields.one("name"), text, fields.one("digest")


@contextlib.contextmanager
def _mistakes_of_the_form() -> Iterator[None]:
    """Turns the errors of a faulty file, which stop a starting daemon, into InvalidRequest."""
    try:
        yield
    except (ConfigInvalid, RulesInvalid) as error:
        raise InvalidRequest(str(error), hint="Nothing was written. Correct it and try again.") from error


async def preview_edit(request: PageRequest) -> Response:
    """Parses the text as at start-up. An error names its line; nothing is written."""
    name, text, digest = _edited(await request.fields())
    with _mistakes_of_the_form():
        looser = editing.preview(request.service, name, text, digest)
    return fragment("settings/confirm.html", name=name, looser=looser, text=text, digest=digest)


async def save_edit(request: PageRequest) -> Response:
    fields = await request.fields()
    name, text, digest = _edited(fields)
    with _mistakes_of_the_form():
        editing.change(request.service, name, text, digest, looser=fields.ticked("looser"))
    shown = await request.service.settings()
    return fragment("settings/changed.html", name=name, settings=shown)


async def account(request: PageRequest) -> Response:
    status = await request.service.status()
    if request.query("code") and not status.signed_in:
        # Leaves the form for the code as it is.
        return rendering.answer("", HTTPStatus.NO_CONTENT)
    return request.part(ACCOUNT, status=status, code_for=None)


async def _account(request: PageRequest, done: SignedIn | None) -> Response:
    """``done``: None after signing out."""
    code_for = done.email if done is not None and done.code_needed else None
    live = ACCOUNT if code_for is None else CODE
    return request.part(live, status=await request.service.status(), code_for=code_for)


def _named(entry: AuditEntryView, vaults: Mapping[str, str]) -> str:
    """A vault, an app or a key, as a person calls it."""
    facts = dict(entry.facts)
    if entry.kind in {"registered", "key-revoked"} and "fingerprint" in facts:
        return f"The device {facts['fingerprint']}"
    if entry.kind == CAUGHT_UP:
        return f"Workspace {entry.subject}"
    return vaults.get(entry.subject) or facts.get("name") or entry.subject


async def _history(request: PageRequest) -> dict[str, Any]:
    sought = await request.given(AccountApi.audit_entries)
    found = await request.call(AccountApi.audit_entries)
    vaults = {seen.vault_id: seen.name for seen in seen_vaults(request.service.journal)}
    return {
        "search": sought.search,
        "before": sought.before,
        "page": found,
        "titles": {subject: request.service.title(subject) for subject in {e.subject for e in found.entries}},
        "names": {entry.sequence: _named(entry, vaults) for entry in found.entries},
    }


REQUESTS = Live("pairings", "apps/requests.html", "/apps/requests")
PAIRED = Live("paired", "apps/paired.html", "/apps/paired")
ORIGINS = Live("origins", "apps/origins.html", "/apps/origins")


async def _known(request: PageRequest) -> dict[str, Any]:
    ours = request.service.apps
    return {
        "requests": await ours.open_requests(),
        "apps": tuple(reversed(await ours.list())),
        "origins": await ours.list_origins(),
        "granted": granted,
        "right_words": RIGHT_WORDS,
        "days": DAYS,
        "max_days": MAX_DAYS,
        "requests_part": REQUESTS,
        "paired_part": PAIRED,
        "origins_part": ORIGINS,
    }


async def accept(request: PageRequest) -> Response:
    """The code is read from the app's window, which shows that the person means the app that asked. None of
    the rights ticked grants none: to leave them out would grant all.
    """
    rights = (await request.fields()).every("rights")
    await request.call(AppsApi.accept_pairing, rights=rights)
    return request.part(REQUESTS, PAIRED, **await _known(request))


ROWS = (
    page("/settings", "settings/settings.html", "Settings", _settings),
    page("/settings/edit", "settings/edit.html", "Change the settings", _files, here="/settings"),
    PageRoute("POST", "/settings/edit/preview", preview_edit),
    PageRoute("POST", "/settings/edit", save_edit),
    PageRoute("GET", "/settings/account", account),
    act("/settings/sign-in", AccountApi.sign_in, _account),
    act("/settings/code", AccountApi.confirm_sign_in, _account),
    act("/settings/sign-out", AccountApi.sign_out, _account),
    page("/help", "help.html", "Help"),
    page("/history", "history.html", "History", _history),
    # Verifying the whole chain takes longer than showing a page of it.
    act("/history/verdict", AccountApi.verify_audit, "parts/verdict.html", "GET"),
    page("/apps", "apps/apps.html", "Apps", _known),
    part(REQUESTS.path, _known, "requests_part"),
    part(PAIRED.path, _known, "paired_part"),
    part(ORIGINS.path, _known, "origins_part"),
    PageRoute("POST", "/apps/requests/{pairing_id}/accept", accept),
    act_on("/apps/requests/{pairing_id}/refuse", AppsApi.refuse_pairing, _known, REQUESTS),
    act_on("/apps/{app_id}/revoke", AppsApi.revoke_app, _known, PAIRED, ORIGINS),
    act_on("/apps/origins/let-in", AppsApi.let_in, _known, ORIGINS),
    act_on("/apps/origins/shut-out", AppsApi.shut_out, _known, ORIGINS, PAIRED),
)
