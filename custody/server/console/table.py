"""A row of the console's table, and what happens to each request of a row: its session, its form, its act,
and where an error is shown.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import chain
from pathlib import PurePath
from typing import Any, Final, Literal
from urllib.parse import urlencode

import anyio.to_thread
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from custody.common.change_words import facts_of, question_of
from custody.common.pages.rendering import FORM, FORM_WITH_FILE, Fields, Live
from custody.common.pages.serving import HEADERS
from custody.schemas.call import Answer, Call, Item
from custody.schemas.common import Unreadable
from custody.schemas.errors import ErrorCode
from custody.server import errors
from custody.server.console import reviews, session
from custody.server.console.context import MAX_DIGITS, PageContext, WaitsForSecondPerson
from custody.server.web.http import services_of, set_cookie
from custody.server.web.problems import trace_id_of

SIGN_IN: Final = "/console/sign-in"
# A payment of a hundred recipients, each with an address and an amount.
MAX_FIELDS: Final = 400
# Where a sign-in leads to: a page of ours and none elsewhere.
_OWN_PATH = re.compile(r"/(console|invitations)(/[A-Za-z0-9_-]+)*/?(\?[A-Za-z0-9_=&.:-]*)?")
# The field at which a refusal of a whole payment is shown.
_BESIDE: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.INSUFFICIENT_FUNDS: "/amounts_sats",
    ErrorCode.LOCKED_FUNDS: "/amounts_sats",
    ErrorCode.ROLE_LIMIT_EXCEEDED: "/amounts_sats",
    ErrorCode.VAULT_LIMIT_EXCEEDED: "/amounts_sats",
    ErrorCode.NOT_IN_ADDRESS_BOOK: "/recipients",
}
View = Callable[[PageContext], Response]


@dataclass(frozen=True)
class Row:
    """``path``: ``{name:int}`` is a record's number.

    ``again``: the page that shows a refused form, with what was typed. ``review``: what is shown back
    first. ``steps_up``: it asks for the second factor again. ``is_open``: without a sign-in. ``has_file``:
    its form may send one. ``has_page``: ``again``, which shows the form, is the page at this path.

    ``acts``: the declared calls of which its form makes one; they say whether it needs a second person, and
    what may need one asks for the second factor, too.
    """

    method: Literal["GET", "POST"]
    path: str
    view: View
    again: View | None = None
    review: Callable[[PageContext], reviews.Review] | None = None
    steps_up: bool = False
    is_open: bool = False
    has_file: bool = False
    has_page: bool = False
    acts: tuple[Call[Any, Any], ...] = ()

    def with_page(self) -> "tuple[Row, ...]":
        if not self.has_page or self.again is None:
            return (self,)
        return Row("GET", self.path, self.again, is_open=self.is_open), self


def form(
    path: str,
    call: Call[Any, Answer],
    again: View,
    done: str | Callable[[Answer], str],
    *,
    to: str = "",
    asks: str = "",
    warns: str | Callable[[PageContext], str] = "",
    beside: Callable[[PageContext], reviews.Facts] = lambda _page: (),
    bound: Callable[[PageContext], reviews.Facts] | None = None,
    in_force: Callable[[PageContext], Mapping[str, Any] | None] | None = None,
    review: Callable[[PageContext], reviews.Review] | None = None,
    steps_up: bool = False,
    is_open: bool = False,
    has_page: bool = False,
    given: Callable[[PageContext], Mapping[str, Any]] = lambda _page: {},
    optional: Sequence[str] = (),
    shows: str = "",
) -> Row:
    """A row whose form makes one call with what was `typed`, and goes on with the words ``done``.

    ``to``: the page to go on to, below the workspace unless it begins with a slash, with the answer's fields
    as ``{0.name}`` and the path's as ``{name}``; where empty, the page that the form belongs to. ``given``:
    fields that are not as they were typed. ``optional``: texts that are left out where nothing was typed.
    ``shows``: the template of an answer with a secret, which is shown once.

    ``asks``: the words of the button below what is shown back: the call as a second person would read it,
    with facts ``beside`` it and what it ``warns`` of. ``bound``: further facts, which must still be so when
    the form acts; a ``review`` of its own shows and pins them itself. ``in_force``: for a form that shows
    what is in force (`pinned` of forms.html), by the call's fields; None where it is not known.
    """
    assert in_force is None or bound is None, "a review pins one mark"

    def typed(page: PageContext) -> dict[str, Any]:
        left_empty = {name: page.form.one(name).strip() or None for name in optional}
        return page.typed(call, **left_empty, **given(page))

    def reviewed(page: PageContext) -> reviews.Review:
        wanted = typed(page)
        # First of all, whether it can be read: a refusal for something else pins nothing anew.
        change = page.as_change(call, wanted)
        pinned = () if in_force is None else (reviews.require_in_force(page, in_force(page), wanted),)
        still = None if bound is None else bound(page)
        if still is not None:
            pinned = (reviews.shown_mark(still),)
        facts = (*facts_of(change), *beside(page), *(still or ()))
        warning = warns if isinstance(warns, str) else warns(page)
        return reviews.Review(question_of(call), facts, asks, warning, pinned=pinned)

    def view(page: PageContext) -> Response:
        wanted = typed(page)
        if in_force is not None:
            reviews.require_in_force(page, in_force(page), wanted)
        if bound is not None and not page.is_repeated(call, wanted):
            reviews.require_as_shown(page, bound(page))
        answer = page.act(call, **wanted)
        if shows and getattr(answer, "secret", None) is not None:
            return page.render(shows, shown=answer)
        target = to.format(answer, **page.request.path_params) or page.request.url.path.rpartition("/")[0]
        words = done if isinstance(done, str) else done(answer)
        return page.redirect(target if target[0] == "/" else f"{page.workspace.path}/{target}", words)

    review = reviewed if asks else review
    return Row(
        "POST", path, view, again, review,
        steps_up=steps_up, is_open=is_open, has_page=has_page, acts=(call,),
    )  # fmt: skip


def template_view(template: str, **context: object) -> View:
    """A page that only shows. Of the context, a call is read, a function asked with the page, and all else is
    as it is.
    """

    def value(page: PageContext, each: object) -> object:
        if isinstance(each, Call):
            return page.read(each)
        return each(page) if callable(each) else each

    return lambda page: page.render(template, **{name: value(page, each) for name, each in context.items()})


def entry_of(
    call: Call[Any, list[Item | Unreadable]], key: str, words: str, *, name: str = ""
) -> Callable[[PageContext], Item]:
    """The entry of the call's list whose ``key`` the path's parameter ``name`` has. Raises NotFound with the
    words.
    """
    return lambda page: page.one_of(page.read(call), key, name or key, words)


def live(
    path: str,
    part_path: str,
    templates: tuple[str, str],
    context: Callable[[PageContext], Mapping[str, Any] | None],
    *,
    around: Callable[[PageContext], Mapping[str, Any]] = lambda _page: {},
    seconds: int | None = None,
) -> tuple[Row, Row]:
    """A page with a part that follows what happens (``live_part``), and the row that the part is loaded from.
    ``templates``: of the page and of the part, which get the ``context``; where it is None, the page has no
    such part. ``around``: of the page alone. ``seconds``: as `Live` has them.
    """

    def part(page: PageContext) -> Live:
        at = f"/console{part_path.replace(':int}', '}')}".format(**page.request.path_params)
        query = urlencode([each for each in page.request.query_params.multi_items() if each[0] != "seen"])
        return Live(PurePath(templates[1]).stem, templates[1], f"{at}?{query}" if query else at, seconds)

    def view(page: PageContext) -> Response:
        values = context(page)
        shown = {"live_part": None} if values is None else {"live_part": part(page), **values}
        return page.render(templates[0], **shown, **around(page))

    def view_of_part(page: PageContext) -> Response:
        shown = context(page)
        if shown is None and page.problem is not None:
            raise page.problem
        return page.render_part(part(page), **(shown or {}))

    return Row("GET", path, view), Row("GET", part_path, view_of_part)


class _RecordNumber(IntegerConvertor):
    """``{name:int}`` of a path. A longer one leads to no row: Python reads no number of thousands of digits,
    the database none above 64 bits.
    """

    regex = f"[0-9]{{1,{MAX_DIGITS}}}"


register_url_convertor("int", _RecordNumber())


def route(row: Row) -> Route:
    async def answer(request: Request) -> Response:
        form = await _form(row, request) if row.method == "POST" else Fields()
        _require_storable(request, form)
        return await anyio.to_thread.run_sync(_respond, row, request, form)

    made = Route(row.path, answer, methods=[row.method])
    # Starlette adds HEAD to every GET; the table does not have it.
    made.methods = {row.method}
    return made


async def _form(row: Row, request: Request) -> Fields:
    """Raises Invalid for a body that is no form."""
    kind, body = request.headers.get("content-type", ""), await request.body()
    read = Fields.read_with_file if row.has_file and kind.startswith(FORM_WITH_FILE) else Fields.read
    try:
        return read(kind, body, MAX_FIELDS)
    except ValueError:
        raise errors.Invalid(f"The console takes its own forms alone ({FORM}).") from None


def _require_storable(request: Request, form: Fields) -> None:
    """As the shapes of the API's bodies: PostgreSQL has no text with U+0000. Raises Invalid."""
    query = (text for _, text in request.query_params.multi_items())
    sent = chain.from_iterable(form.values.values())
    if any("\0" in text for text in chain((request.scope["path"],), query, sent)):
        raise errors.Invalid("A text holds U+0000, which is no character of any. Type it again.")


def _respond(row: Row, request: Request, form: Fields) -> Response:
    held = session.BrowserSession.read(request)
    page = PageContext(request, services_of(request), form, held=held, acts=row.acts)
    try:
        _let_in(row, page)
        response = _answer(row, page)
    except (errors.Unauthenticated, errors.TokenExpired):
        page.held = None
        response = _to_sign_in(request)
    except errors.CustodyError as error:
        response = problem_page(page, error)
    finally:
        page.snapshot.close()
    # Whatever the answer is: the tokens that came are used up.
    if page.held is not None and page.held is not held:
        page.held.keep(request, response)
    return response


def _let_in(row: Row, page: PageContext) -> None:
    """Raises Unauthenticated, and PermissionDenied for a form of another site, or where an identity provider
    signed the person in and the page is about more than its organisation: the account itself.
    """
    if row.method == "POST":
        session.require_own_site(page.request)
    if row.is_open:
        return
    if page.held is None:
        raise errors.Unauthenticated("Sign in first.")
    page.maybe_caller, page.held = session.authenticate(page.services, page.request, page.held, page.snapshot)
    is_of_all = not row.path.startswith("/w/{workspace_id:int}/") and row.path not in {"/", "/sign-out"}
    if page.caller.bound_to is not None and is_of_all:
        raise errors.NoRoleOpens(
            "Sign in with your own password for this, not through the identity provider."
        )


def _answer(row: Row, page: PageContext) -> Response:
    if row.method == "GET":
        return row.view(page)
    try:
        if not row.is_open and page.held is not None:
            session.require_own_form(page.held, page.form.one("form_token"))
        if page.form.ticked("back") and row.again is not None:
            return row.again(page)
        steps_up = row.steps_up or any(call.second_person for call in row.acts)
        between = reviews.page_before(page, row.review, steps_up=steps_up)
        return row.view(page) if between is None else between
    except WaitsForSecondPerson:
        return page.redirect(
            f"{page.workspace.path}/changes", "It waits for a second person. Nothing is changed yet."
        )
    except errors.CustodyError as error:
        if isinstance(error, errors.SecondPersonNeeded) and row.review is not None:
            page.problem = error
            return reviews.review_page(page, row.review(page))
        if isinstance(error, errors.IdempotencyInProgress):
            # Not the form again: its key would be another one, and what is under way would be made twice.
            raise errors.StateConflict(
                "This form was sent a moment ago, and what it asks for is being done.",
                hint="See what came of it before you send anything again.",
            ) from error
        is_over = isinstance(error, errors.Unauthenticated | errors.TokenExpired) and not row.is_open
        if row.again is None or is_over:
            raise
        if not error.faults and (pointer := _BESIDE.get(error.code)) is not None:
            error.faults = (errors.fault(pointer, error.detail),)
        page.problem = error
        return row.again(page)


def problem_page(page: PageContext, error: errors.CustodyError) -> Response:
    """An error where no form is to be shown again: a page of its own."""
    page.problem = error
    try:
        return page.render("problem.html")
    except errors.CustodyError:
        # Of a workspace that the person is not in: the frame would ask for it.
        page.maybe_caller = None
    return page.render("problem.html")


def own_path(path: str) -> str:
    """Where to go after a sign-in."""
    return path if _OWN_PATH.fullmatch(path) else "/console/"


def _to_sign_in(request: Request) -> Response:
    """For a part of a page the whole window goes there (htmx's header)."""
    if "hx-request" in request.headers:
        return Response(None, HTTPStatus.NO_CONTENT.value, {**HEADERS, "HX-Redirect": SIGN_IN})
    path = request.scope["path"]
    # A link of another site brings no cookie (SameSite): that is no reason to end a session.
    came = session.BrowserSession.read(request) is not None
    target = f"{SIGN_IN}?next={path}" if request.method == "GET" and own_path(path) == path else SIGN_IN
    response = RedirectResponse(target, HTTPStatus.SEE_OTHER.value, HEADERS)
    if came:
        set_cookie(request, response, "session")
    return response


async def on_error(request: Request, error: Exception) -> Response:
    """Before a row's own leading began: no row has this path, or not this method; or more was sent than the
    platform reads. And what nobody foresaw, which the application around this one writes into its log.
    """
    refusal = error if isinstance(error, errors.CustodyError) else errors.NotFound("There is no such page.")
    if isinstance(error, HTTPException) and error.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        refusal = errors.TooMuch(
            "This is more than the console reads at once (128 kB). Send a long list in parts."
        )
    if not isinstance(error, errors.CustodyError | HTTPException):
        hint = (
            "What you did last may be done: look before you do it again. Quote this number to the operator: "
        )
        refusal = errors.Failed(
            "The platform failed by a fault of its own.", hint=hint + trace_id_of(request)
        )
    page = PageContext(request, services_of(request))
    return await anyio.to_thread.run_sync(problem_page, page, refusal)
