"""One request of the console: who asks, what was typed (numbers, amounts and days as the API takes them), the
calls it makes, and its answer.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from http import HTTPStatus
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, overload
from urllib.parse import quote, urlencode

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from custody.common.change_words import nameless_field
from custody.common.pages.rendering import Fields, Live
from custody.common.pages.serving import HEADERS, HTML
from custody.schemas.call import PERMISSION_WORDS, Auth, Call, Page, PermissionName, Way
from custody.schemas.changes import REQUEST_CHANGE, Change, RequestChangeRequest
from custody.schemas.common import Unreadable
from custody.schemas.users import Organisation, User, WorkspaceEntry
from custody.server import calls, errors
from custody.server.calls import Ctx, In, Invocation, Steps, Watched
from custody.server.console.rendering import TEMPLATES
from custody.server.console.session import BrowserSession, said, say
from custody.server.people.people import enter, used_sections, user_record
from custody.server.rules.credentials import Caller, anybody
from custody.server.second_person.changes import as_change
from custody.server.second_person.requirement import require_no_second_person, require_two
from custody.server.services import Services
from custody.server.shown import apart
from custody.server.store.store import PageSnapshot, read_once
from custody.server.web.http import address_of
from custody.server.web.problems import trace_id_of

# The most digits of a record's number (64 bits).
MAX_DIGITS = 18
# A form's key: the trace id of the request that its page answered.
# Entries of a list on one page.
PAGE = 25
_KEY = re.compile(r"[0-9a-f-]{1,64}")
Shape = TypeVar("Shape", bound=BaseModel)
Answer = TypeVar("Answer")
Item = TypeVar("Item")


class WaitsForSecondPerson(Exception):
    """The person asked a second one to confirm: nothing is changed yet."""


@dataclass(frozen=True)
class PageWorkspace:
    """The workspace that a page is about, and what the person may do there."""

    organisation: Organisation
    entry: WorkspaceEntry

    @property
    def id(self) -> int:
        return self.entry.workspace_info.uid

    @property
    def name(self) -> str:
        return self.entry.workspace_info.name

    @property
    def path(self) -> str:
        return f"/console/w/{self.id}"

    def may(self, *permissions: str) -> bool:
        """Whether the person has one of them here. It hides what would be refused; the call refuses."""
        held = {permission.rule_name for permission in self.entry.role.perm}
        return any(PermissionName(each) in held for each in permissions)

    def require(self, permission: str) -> None:
        """Raises PermissionDenied."""
        if not self.may(permission):
            needed = PERMISSION_WORDS[PermissionName(permission)]
            raise errors.PermissionDenied(f"Your role lacks the permission: {needed}.")


@dataclass
class PageContext:
    """``form``: what was sent; empty for a page that is only read. ``problem``: why a form was refused."""

    request: Request
    services: Services
    form: Fields = field(default_factory=Fields)
    maybe_caller: Caller | None = None
    held: BrowserSession | None = None
    problem: errors.CustodyError | None = None
    # Entries of the lists on this page that cannot be shown.
    unreadable: list[Unreadable] = field(default_factory=list)
    acts: tuple[Call[Any, Any], ...] = ()
    # Of the list on this page (`read_page`); None where this is the first page, or the last.
    first_page: str | None = None
    next_page: str | None = None

    # --- who and where --------------------------------------------------------------------------------------

    @property
    def caller(self) -> Caller:
        assert self.maybe_caller is not None, "an open page has no caller"
        return self.maybe_caller

    @cached_property
    def snapshot(self) -> PageSnapshot:
        return PageSnapshot(self.services.store)

    @cached_property
    def user(self) -> User:
        self.services.rates.calls.take(self.caller.counted_as)
        with self.snapshot.reading() as db:
            return user_record(db, self.caller.user_id, self.caller)

    @cached_property
    def workspaces(self) -> list[PageWorkspace]:
        """The workspaces that the person is in."""
        return [
            PageWorkspace(organisation, entry)
            for organisation in self.user.organisations_info.organisations
            for entry in organisation.workspaces.workspaces
        ]

    @cached_property
    def maybe_workspace(self) -> PageWorkspace | None:
        """The workspace of the path. None where the page is of none. Raises NotFound where the person is no
        member.
        """
        number = self.request.path_params.get("workspace_id")
        if number is None:
            return None
        for each in self.workspaces:
            if each.id == number:
                return each
        raise errors.NotFound("You are in no such workspace.")

    @property
    def workspace(self) -> PageWorkspace:
        assert self.maybe_workspace is not None, "the row's path names a workspace"
        return self.maybe_workspace

    def person(self, user_id: str | int, name: str | None) -> str:
        """``name``: as the platform tells it to this reader, if it does."""
        if str(user_id) == str(self.user.uuid):
            return f"{name or self.user.email} (you)"
        return name or f"member {user_id}"

    @property
    def section(self) -> str:
        """The entry of the menu that the path belongs to."""
        _, _, first, *rest = self.request.url.path.split("/")
        return rest[1] if first == "w" and len(rest) > 1 else first or "home"

    def query(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default)

    def number(self, name: str) -> int:
        """A whole number that the form sent: one that was typed, or a record's. Raises Invalid."""
        value = number_of(self.form.one(name).strip())
        if value is None:
            raise errors.Invalid.at(f"/{name}", "Type a whole number; of a list, choose one.")
        return value

    def cursor(self, name: str) -> int | None:
        """The record's number in the query after which a list goes on; None for its start. Raises Invalid."""
        text = self.query(name)
        value = number_of(text)
        if text and value is None:
            raise errors.Invalid.at(f"/{name}", "This is not a place in the list: open the list again.")
        return value

    def path_param(self, name: str) -> Any:
        return self.request.path_params[name]

    # --- calls, made here -----------------------------------------------------------------------------------

    @overload
    def read(self, call: Call[Any, list[Item | Unreadable]], /, **given: Any) -> list[Item]: ...

    @overload
    def read(self, call: Call[Any, Page[Item | Unreadable]], /, **given: Any) -> list[Item]: ...

    @overload
    def read(self, call: Call[Any, Answer], /, **given: Any) -> Answer: ...

    def read(self, call: Call[Any, Any], /, **given: Any) -> Any:
        """What a call that only reads answers, in the page's snapshot. Raises what it refuses with."""
        answer = self._answer(call, given)
        return self.readable(answer.items if isinstance(answer, Page) else answer)

    def tried(self, read: Callable[[], Answer]) -> tuple[Answer | None, str]:
        """What was read; where it is refused, None and why."""
        try:
            return read(), ""
        except errors.CustodyError as error:
            return None, error.detail

    def read_page(
        self, call: Call[Any, Any], /, *, key: str = "", at: str = "after", **given: Any
    ) -> list[Any]:
        """`read` of a list in pages, from where the query's ``at`` says on; `first_page` and `next_page` are
        the queries of those. ``key``: the entry's field for it, of a call that does not say whether more
        follow: one entry more is read.
        """
        assert call.shape is not None, "a list in pages takes its place"
        is_number = int in set(_kinds_of(call.shape.model_fields["after"].annotation))
        after = self.cursor(at) if is_number else self.query(at) or None
        items = self._answer(call, {"limit": PAGE + bool(key), "after": after, **given})
        if key:
            items = Page(items[:PAGE], total=0, has_more=len(items) > PAGE)
        following = items.following(key or call.key)
        query = self.request.query_params.multi_items()
        kept = [each for each in query if each[1] and each[0] not in {at, "seen"}]
        self.first_page = None if after is None else urlencode(kept)
        self.next_page = None if following is None else urlencode([*kept, (at, following)])
        readable: list[Any] = self.readable(items.items)
        return readable

    def _answer(self, call: Call[Any, Any], given: Mapping[str, Any]) -> Any:
        assert not call.writes, "an act has a transaction of its own"
        invocation = self._counted(call, given)
        with calls.refusals_recorded(self.services, invocation), self.snapshot.reading() as db:
            access = calls.let_in(self.services, db, invocation)
            ctx = Ctx(self.services, invocation.caller, db, access, invocation.ids)
            key = call, calls.canonical(invocation.request), *invocation.ids.items()
            answer = read_once(db, key, lambda: calls.make(ctx, call, invocation.request))
        return answer.answer if isinstance(answer, Watched) else answer

    def as_change(self, call: Call[Any, Any], given: Mapping[str, Any]) -> Change:
        """The call as a second person would read it, after a trial that is rolled back. Raises what it
        refuses the person with, and Invalid or NotFound where it names what is not there.
        """
        invocation = self._invocation(call, given)
        with calls.refusals_recorded(self.services, invocation), self.snapshot.reading() as db:
            now, caller = self.services.tools.clock(), invocation.caller
            access = enter(db, caller, self.workspace.id, call.permissions, now)
            change = as_change(Ctx(self.services, caller, db, access), call, invocation.request)
        if (field := nameless_field(change)) is not None:
            if field in self.form.values:
                raise errors.Invalid.at(f"/{field}", "Choose one of the list.")
            raise errors.NotFound("What this page is about is not there any more.")
        if calls.is_whole(call) and not self.is_repeated(call, given):
            invocation = self._counted(call, given)
            self.snapshot.end()
            # Of one that may need a second person, the call itself knows by what it is about.
            asks = suppress(errors.SecondPersonNeeded)
            with asks, calls.context_in(self.services, caller, In.TRIAL) as ctx:
                allowed = calls.let_in(self.services, ctx.db, invocation)
                calls.make(replace(ctx, maybe_access=allowed, ids=invocation.ids), call, invocation.request)
                ctx.db.flush()
                if call.second_person:
                    require_two(ctx.db, self.workspace.organisation.org_id)
        return change

    def act(
        self,
        call: Call[Any, Answer],
        /,
        *,
        nth: int = 0,
        check: Callable[[Answer], None] | None = None,
        **given: Any,
    ) -> Answer:
        """Makes a call that changes something. Where the form says to ask a second person, the change is
        asked for instead. ``nth``: which of a form's calls it is, where one form makes several. ``check``: of
        the answer, before anything is stored; it raises where that is not what the person was shown.

        Raises what it refuses with, and WaitsForSecondPerson.
        """
        assert call in self.acts, "the row says what it may do"
        invocation = replace(
            self._counted(call, given), key=self._key(nth) if call.creates else None, check=check
        )
        if call.second_person and self.form.ticked("ask_second_person"):
            wanted = dict(RequestChangeRequest.of(call, invocation.request))
            calls.answer(self.services, self._counted(REQUEST_CHANGE, wanted), self.snapshot)
            raise WaitsForSecondPerson
        answered = calls.answer(self.services, invocation, self.snapshot)
        repeated = answered.value is None
        answer: Answer = call.writer.validate_json(answered.content) if repeated else answered.value
        return answer

    def is_repeated(self, call: Call[Any, Any], given: Mapping[str, Any]) -> bool:
        """Whether this form made the call before. Raises StateConflict where the answer had a secret."""
        key = self._key(0)
        if key is None or not call.creates:
            return False
        invocation = self._invocation(call, given)
        body = calls.canonical(invocation.request)
        with self.snapshot.reading() as db:
            known = self.services.idempotency.known(db, calls.scope_of(invocation, key), body)
        return known is not None

    def typed(self, call: Call[Any, Any], /, **given: Any) -> dict[str, Any]:
        """What is given, and for every other field of the call what the path or the form says. A box that is
        not ticked is a no.
        """
        assert call.shape is not None, "a form's call takes fields"
        params, typed = self.request.path_params, dict(given)
        for name, declared in call.shape.model_fields.items():
            kinds = set(_kinds_of(declared.annotation))
            if name in given:
                continue
            if name in params:
                typed[name] = params[name]
            elif name == "org_id":
                typed[name] = self.workspace.organisation.org_id
            elif bool in kinds:
                typed[name] = self.form.ticked(name)
            elif kinds & {list, tuple}:
                typed[name] = list(self.form.every(name))
            elif name in self.form.values:
                typed[name] = self.number(name) if int in kinds else self.form.one(name)
        return typed

    def second_person(self) -> errors.SecondPersonNeeded | None:
        """What the form's call will be refused with, known before the person proves that it is they; None
        where they may not make it, or ask a second person with this form.
        """
        if self.maybe_workspace is None or self.form.ticked("ask_second_person"):
            return None
        needing = [each for each in self.acts if each.second_person and self.workspace.may(*each.permissions)]
        if not needing:
            return None
        with self.snapshot.reading() as db:
            try:
                require_no_second_person(db, self.workspace.organisation.org_id, needing[0])
            except errors.SecondPersonNeeded as needed:
                return needed
        return None

    def _counted(self, call: Call[Any, Any], given: Mapping[str, Any]) -> Invocation:
        """Raises RateLimited."""
        if call.needs is not Auth.OPEN:
            self.services.rates.take_call(self.caller.counted_as, call)
        return self._invocation(call, given)

    def _invocation(self, call: Call[Any, Any], given: Mapping[str, Any]) -> Invocation:
        """Of the path's workspace, where nothing else is given."""
        if call.shape is not None and "workspace_id" in call.shape.model_fields and self.maybe_workspace:
            given = {"workspace_id": self.workspace.id, **given}
        is_open = call.needs is Auth.OPEN
        caller = self.anybody if is_open else calls.known_as(self.caller, call, Way.UNLINKED)
        request = None if call.shape is None else shaped(call.shape, **given)
        ids = {name: self.request.path_params[name] for name in call.path_ids}
        return Invocation(call, request, caller, ids)

    # --- the console's own, which are no calls --------------------------------------------------------------

    @property
    def anybody(self) -> Caller:
        """Who asks for a page that needs no sign-in."""
        return anybody(address_of(self.request), trace_id_of(self.request))

    @contextmanager
    def reading(self) -> Iterator[Ctx]:
        """In the page's snapshot."""
        with self.snapshot.reading() as db:
            yield Ctx(self.services, self.maybe_caller or self.anybody, db)

    @contextmanager
    def writing(self) -> Iterator[Ctx]:
        """In a transaction of its own. Raises Unauthenticated where the session was ended meanwhile."""
        self.snapshot.end()
        with calls.context_in(self.services, self.caller, In.WRITE) as ctx:
            yield ctx

    def make_in_parts(self, steps: Steps[Answer]) -> Answer:
        self.snapshot.end()
        return calls.make_in_parts(self.services, self.maybe_caller or self.anybody, steps)

    def admit(self) -> None:
        """Counts what takes no call of the API by its address. Raises RateLimited."""
        calls.admit(self.services, self.anybody)

    # --- what the answers were ------------------------------------------------------------------------------

    def readable(self, answer: Any) -> Any:
        """The answer without entries that cannot be shown: the page's frame says which."""
        if not isinstance(answer, list):
            self.unreadable += getattr(answer, "unreadable", ())
            return answer
        readable, unreadable = apart(answer)
        self.unreadable += unreadable
        return readable

    def one_of(self, items: Sequence[Item], key: str, name: str, words: str) -> Item:
        """The entry whose ``key`` the path's parameter ``name`` has. Raises NotFound with the words."""
        for each in items:
            if getattr(each, key) == self.path_param(name):
                return each
        raise self.missing(words)

    def missing(self, words: str) -> errors.NotFound:
        """Where a list has not what the path names."""
        return errors.NotFound(self.unreadable[0].unreadable if self.unreadable else words)

    def _key(self, nth: int) -> str | None:
        """The form's own: sent twice, it acts once. Raises Invalid for one that no page of ours wrote."""
        key = self.form.one("key")
        if key and not _KEY.fullmatch(key):
            raise errors.Invalid("This form is not this console's: load the page again.")
        return (f"{key}-{nth}" if nth else key) or None

    # --- the answer -----------------------------------------------------------------------------------------

    def render(self, template: str, **context: object) -> Response:
        """A whole page, with what was typed and, for a refused form, why."""
        words = said(self.request)
        status = HTTPStatus.OK if self.problem is None else self.problem.code.status
        html = TEMPLATES.render(template, **{**self._frame(), "said": words, **context})
        response = Response(html, status.value, HEADERS, HTML)
        if words:
            say(self.request, response, "")
        return response

    def render_part(self, live: Live, **context: object) -> Response:
        """A part that the browser loads again: no content where it shows the same already."""
        html, mark = TEMPLATES.live_part(live, {**self._frame(), **context})
        if mark == self.query("seen"):
            return Response(None, HTTPStatus.NO_CONTENT.value, HEADERS)
        return Response(html, HTTPStatus.OK.value, HEADERS, HTML)

    def redirect(self, path: str, words: str = "") -> Response:
        """On to another page, which says what was done."""
        response = RedirectResponse(quote(path, safe="/?=&#%"), HTTPStatus.SEE_OTHER.value, HEADERS)
        if words:
            say(self.request, response, words)
        return response

    @property
    def _used(self) -> frozenset[str]:
        with self.snapshot.reading() as db:
            return used_sections(db, self.workspace.id)

    def _frame(self) -> dict[str, object]:
        signed_in, params, problem = self.maybe_caller is not None, self.request.path_params, self.problem
        # For programs: a page shows the fault at its field, and the state that a conflict says to read.
        is_for_programs = (
            isinstance(problem, errors.Invalid) or getattr(problem, "hint", "") == errors.StateConflict.hint
        )
        return {
            "user": self.user if signed_in else None,
            "is_bound": signed_in and self.caller.bound_to is not None,
            "workspace": self.maybe_workspace if signed_in else None,
            "used": self._used if signed_in and self.maybe_workspace else frozenset(),
            "person": self.person,
            "path": self.request.url.path,
            "is_answer": self.request.method == "POST",
            "section": self.section,
            # Of the vault that the page is about.
            "base": f"/console/w/{params.get('workspace_id')}/vaults/{params.get('vault_id')}",
            "form_token": self.held.form_token if self.held is not None else "",
            "key": trace_id_of(self.request),
            "typed": self.form,
            "query": self.query,
            "first_page": self.first_page,
            "next_page": self.next_page,
            "problem": problem,
            "hint": "" if problem is None or is_for_programs else problem.hint,
            "said": "",
            "unreadable": list(dict.fromkeys((each.row_id, each.unreadable) for each in self.unreadable)),
        }


def _kinds_of(annotation: Any) -> Iterator[Any]:
    """The types that a field may have, without what constrains them."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _kinds_of(get_args(annotation)[0])
    elif origin in {Union, UnionType}:
        for each in get_args(annotation):
            yield from _kinds_of(each)
    else:
        yield origin or annotation


def number_of(text: str) -> int | None:
    """None where it is no number, or longer than a record's."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS else None


def shaped(kind: type[Shape], /, **values: object) -> Shape:
    """Raises Invalid, which names the fields and never repeats what was typed (P49)."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise errors.refused(error) from None
