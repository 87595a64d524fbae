"""How a declared call is served: the function that makes it, what that function may reach, and the one way to
it, for the API, the console and a confirmed change alike.

A use case is a plain function of a `Ctx` and what is asked. It runs in one transaction: a snapshot, or the
write lock where the call changes something. One that needs more is a generator: each ``yield`` ends what is
open and names what the next part runs in (`In`)::

    @serves_in_parts(CREATE_PSBT)
    def create_psbt(ctx: Ctx, request: CreatePsbtRequest) -> Steps[CreatePsbtResponse]:
        draft = drafted(ctx, request)      # in a snapshot
        ctx = yield In.WRITE           # the caller is let in again; raises Outdated: from the beginning
        return stored(ctx, request, draft)
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from pydantic import BaseModel
from sqlalchemy.orm import Session

from custody.schemas.call import ANY_MEMBER, Auth, Call, Page, Way
from custody.schemas.changes import Json
from custody.server import errors
from custody.server.people.people import enter
from custody.server.requests.changes import MAX_TRIES, OutdatedDraft, read_revision
from custody.server.requests.idempotency import Scope
from custody.server.requests.rates import caller_at
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import Caller, WorkspaceAccess
from custody.server.second_person.requirement import require_no_second_person
from custody.server.sign_in.access_tokens import require_session
from custody.server.store.store import PageSnapshot
from custody.server.vaults.stored import place_of

if TYPE_CHECKING:
    from custody.server.services import Services, Tools

Input = TypeVar("Input")
Answer = TypeVar("Answer")
Record = TypeVar("Record")
# Why a caller was refused: attempts without permission are recorded, unlike mistakes.
_WHY: Final[Mapping[type[errors.CustodyError], str]] = {
    errors.PermissionDenied: "they have no permission for it",
    errors.NotOrgMember: "they are no member of the organisation",
    errors.NotASigner: "they are no signer of the vault, or may not approve what they proposed",
    errors.KeyIsRevoked: "their key is revoked",
    errors.RoleLimitExceeded: "it is above what the limit of their role leaves",
    errors.VaultLimitExceeded: "it is above the limit of the vault",
    errors.NotInAddressBook: "a recipient is not in the address book",
}
REFUSALS: Final = tuple(_WHY)
# By the error's code.
REFUSED: Final = {
    each.code: Event(each.code, f"tried to {{tried}}, and was refused: {why} // {{method}}", Category.ACCESS)
    for each, why in _WHY.items()
}


class In(Enum):
    """What a part of a use case runs in."""

    SNAPSHOT = "a snapshot"
    WRITE = "a transaction that holds the write lock, committed at the part's end"
    TRIAL = "the same, rolled back at the part's end"
    NOTHING = "no transaction: slow checks, other machines, waiting"


@dataclass(frozen=True)
class Ctx:
    """What a use case gets beside what is asked. ``db`` and ``access`` raise where there is none. ``tries``:
    how often a commit overtook what was prepared. ``cookie``: the refresh token that came with the request.
    """

    services: "Services"  # until each of them is a noun's functions
    caller: Caller
    maybe_db: Session | None = None
    maybe_access: WorkspaceAccess | None = None
    ids: Mapping[str, int] = field(default_factory=dict)
    tries: int = 0
    cookie: str = field(default="", repr=False)

    @property
    def tools(self) -> "Tools":
        return self.services.tools

    @property
    def db(self) -> Session:
        assert self.maybe_db is not None, "this part runs in no transaction"
        return self.maybe_db

    @property
    def access(self) -> WorkspaceAccess:
        assert self.maybe_access is not None, "the call names no workspace"
        return self.maybe_access

    def enter(self, call: Call[Any, Any], workspace_id: int) -> "Ctx":
        """For a call whose workspace the record alone says. Raises NotFound, PermissionDenied."""
        assert not isinstance(call.needs, Auth), "the call is of a workspace"
        access = enter(self.db, self.caller, workspace_id, call.needs, self.now)
        return replace(self, maybe_access=access)

    def find(self, kind: type[Record], key: object, what: str, *, for_update: bool = False) -> Record:
        """A record of the workspace. Raises NotFound, for one of another workspace too (P24)."""
        row: Any = self.db.get(kind, key, with_for_update=for_update or None)
        if row is None or row.workspace_id != self.access.workspace_id:
            raise errors.NotFound(f"There is no such {what} in this workspace.")
        record: Record = row
        return record

    def add(self, row: object) -> None:
        """A new row, which has its id from then on."""
        self.db.add(row)
        self.db.flush()

    @property
    def now(self) -> datetime:
        return self.tools.clock()

    def event(self, event: Event, payload: Mapping[str, Any] | None = None, /, **facts: Any) -> None:
        """Appends to the audit log. ``payload``: a webhook's."""
        self.tools.audit.record(self.db, self.caller, event, self.maybe_access, payload, **facts)


Steps = Generator[In, Ctx, Answer]
Function = Callable[[Ctx, Input], Answer]


@dataclass(frozen=True)
class ChangeApproval(Generic[Input]):
    """What the second person's confirmation of a call depends on in what is stored. ``cools``: whether the
    request allows more now. ``in_force``: of each request, what holds now in the place of its fields; they
    name records that exist. ``in_full``: the request with what it leaves to the record that it changes.
    """

    cools: Function[Input, bool] = lambda _ctx, _request: False
    in_force: Function[Sequence[Input], Sequence[Mapping[str, Json]]] | None = None
    in_full: Function[Input, Input] = lambda _ctx, request: request


_WHOLE: dict[Call[Any, Any], Function[Any, Any]] = {}
_APPROVALS: dict[Call[Any, Any], ChangeApproval[Any]] = {}
_IN_PARTS: dict[Call[Any, Any], Function[Any, Steps[Any]]] = {}
_FIRST: dict[Call[Any, Any], In] = {}


def serves(
    call: Call[Input, Answer], approval: ChangeApproval[Input] | None = None
) -> Callable[[Function[Input, Answer]], Function[Input, Answer]]:
    """The function that makes the call."""

    def kept(function: Function[Input, Answer]) -> Function[Input, Answer]:
        _WHOLE[call] = function
        if approval is not None:
            _APPROVALS[call] = approval
        return function

    return kept


def serves_in_parts(
    call: Call[Input, Answer], *, first: In = In.SNAPSHOT
) -> Callable[[Function[Input, Steps[Answer]]], Function[Input, Steps[Answer]]]:
    """The generator that makes the call. ``first``: what its first part runs in."""

    def kept(function: Function[Input, Steps[Answer]]) -> Function[Input, Steps[Answer]]:
        _IN_PARTS[call] = function
        _FIRST[call] = first
        return function

    return kept


def approval_of(call: Call[Any, Any]) -> ChangeApproval[Any]:
    return _APPROVALS.get(call, ChangeApproval())


def make(ctx: Ctx, call: Call[Input, Answer], request: Input) -> Answer:
    """The call, all of it in the transaction that is open. The caller must be let in already (`let_in`)."""
    if call not in _IN_PARTS:
        return cast("Answer", _WHOLE[call](ctx, request))
    steps = _IN_PARTS[call](ctx, request)
    next(steps)
    return cast("Answer", _end(steps, ctx))


def _end(steps: Steps[Answer], ctx: Ctx) -> Answer:
    """All that is left, in the transaction that is open."""
    try:
        while True:
            steps.send(ctx)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # StopIteration does not carry the type


def is_whole(call: Call[Any, Any]) -> bool:
    """Whether all of it happens in one transaction."""
    return call in _WHOLE


@dataclass(frozen=True)
class Invocation:
    """One call of somebody's. ``key``: its ``Idempotency-Key``. ``check``: of the answer, before it is
    committed; it raises where that is not what the person was shown.
    """

    call: Call[Any, Any]
    request: Any
    caller: Caller
    ids: Mapping[str, int] = field(default_factory=dict)
    key: str | None = None
    check: Callable[[Any], None] | None = None
    cookie: str = field(default="", repr=False)

    @property
    def path(self) -> str:
        """As called, with its ids."""
        return self.call.path.format(**self.ids)

    @property
    def workspace_id(self) -> int | None:
        return getattr(self.request, self.call.workspace_field, None)


def known_as(caller: Caller, call: Call[Any, Any], *unlinked: Way) -> Caller:
    """The caller of this call. ``unlinked``: what is open here to a session with a password where an
    organisation asks for its identity provider.
    """
    needs_none = bool(call.open_to.intersection(unlinked))
    return replace(caller, needs_no_provider=needs_none, decides=Way.DECIDER in call.open_to)


def let_in(services: "Services", db: Session, invocation: Invocation) -> WorkspaceAccess | None:
    """The caller's access to the workspace that is named; None where there is none, or where the function
    has to `Ctx.enter` it. Raises NotFound, PermissionDenied.
    """
    call, caller = invocation.call, invocation.caller
    if caller.service is not None and Way.PROGRAM not in call.open_to:
        raise errors.NoRoleOpens("A service account may not call this: it needs a person who is signed in.")
    if isinstance(call.needs, Auth):
        if caller.bound_to is not None and Way.BOUND not in call.open_to:
            raise errors.NoRoleOpens(
                "Sign in with your own password for this, not through the identity provider."
            )
        return None
    if invocation.workspace_id is None:
        assert call.long_poll, "the call names a workspace"
        return None
    return enter(db, caller, invocation.workspace_id, call.needs, services.tools.clock())


@dataclass(frozen=True)
class Watched(Generic[Answer]):
    """What a long poll waits for: that the workspace's revision rises above the one that was read with the
    answer.
    """

    answer: Answer
    workspace_id: int
    revision: int = 0


@dataclass(frozen=True)
class EncodedAnswer:
    """``content``: as it travels. ``value``: what the function returned, None where an earlier answer is
    repeated.
    """

    content: bytes
    value: Any = field(default=None, compare=False)


def answer(
    services: "Services", invocation: Invocation, snapshot: PageSnapshot | None = None
) -> EncodedAnswer:
    """Makes the call, in transactions of its own; what it reads first, in ``snapshot``, a page's, which ends
    then. Raises what it refuses with, which is recorded.
    """
    if invocation.call.by_address:
        admit(services, invocation.caller)
    with refusals_recorded(services, invocation):
        return run(services, invocation, snapshot)


@contextmanager
def refusals_recorded(services: "Services", invocation: Invocation) -> Iterator[None]:
    """Raises what is refused in the block, and RateLimited."""
    call, caller = invocation.call, invocation.caller
    try:
        yield
    except REFUSALS as error:
        attempt, is_change = (call.method, invocation.path), call.is_change
        record_refusal(services, caller, attempt, invocation.workspace_id, error, is_change=is_change)
        raise


def run(services: "Services", invocation: Invocation, snapshot: PageSnapshot | None = None) -> EncodedAnswer:
    """`answer`, for a function that makes another call: a refusal is recorded as its own."""
    one = _Run(services, invocation, snapshot)
    try:
        with nullcontext() if one.scope is None else services.idempotency.guard(one.scope):
            return EncodedAnswer(one.content(), one.value)
    except OutdatedDraft as error:
        # Of a read, or of the last try, which prepared in the same transaction.
        raise errors.StateConflict(str(error)) from error


class _RolledBack(Exception):
    """Ends a trial."""


def admit(services: "Services", caller: Caller) -> None:
    """Counts a call from its address. Raises RateLimited."""
    services.calls_by_address.take(caller_at(caller.address))


@dataclass(eq=False)
class _Run:
    """The answer is encoded inside the transaction: an error in it must roll back, and a repeated request
    gets the same bytes.
    """

    services: "Services"
    invocation: Invocation
    page: PageSnapshot | None
    value: Any = None
    parts: int = 0

    def __post_init__(self) -> None:
        call, key = self.invocation.call, self.invocation.key
        self.scope = scope_of(self.invocation, key) if key and call.creates else None

    def content(self) -> bytes:
        call = self.invocation.call
        if call not in _IN_PARTS:
            with self._open(In.WRITE if call.writes else In.SNAPSHOT) as ctx:
                encoded = self._once(ctx, partial(make, ctx, call, self.invocation.request))
                if isinstance(self.value, Watched):
                    # In the snapshot of the answer: a later commit has a higher revision.
                    revision = read_revision(ctx.db, self.value.workspace_id)
                    self.value = replace(self.value, revision=revision)
                return encoded
        for tries in range(MAX_TRIES):
            with suppress(OutdatedDraft):
                return self._part_by_part(tries)
        return self._part_by_part(MAX_TRIES)

    def _part_by_part(self, tries: int) -> bytes:
        """At the last try, all up to the write is in the write's transaction, so that it ends in any case."""
        is_last, steps = tries == MAX_TRIES, None
        part = In.WRITE if is_last else _FIRST[self.invocation.call]
        try:
            while True:
                with self._open(part, tries) as ctx:
                    try:
                        if steps is None:
                            if (known := self._known(ctx)) is not None:
                                return known
                            steps = _IN_PARTS[self.invocation.call](ctx, self.invocation.request)
                            part = next(steps)
                            while is_last and part in {In.SNAPSHOT, In.NOTHING}:
                                part = steps.send(ctx)
                            if not is_last or part is In.TRIAL:
                                continue
                        if part is In.WRITE and self.scope is not None:
                            # An answer that is stored needs its effect's transaction: this part is the last.
                            return self._once(ctx, partial(_end, steps, ctx))
                        part = steps.send(ctx)
                    except StopIteration as done:
                        return self._encoded(done.value)
        finally:
            # Where a part cannot begin or commit, the use case cleans up at once.
            if steps is not None:
                steps.close()

    @contextmanager
    def _open(self, part: In, tries: int = 0) -> Iterator[Ctx]:
        """What a part runs in, once its caller is let in."""
        services, invocation, page = self.services, self.invocation, self.page
        self.page = None
        if page is not None and part is not In.SNAPSHOT:
            page.end()
            page = None
        if part is In.NOTHING:
            yield Ctx(services, invocation.caller, ids=invocation.ids, tries=tries, cookie=invocation.cookie)
            return
        store, writes = services.store, part in {In.WRITE, In.TRIAL}
        opened = store.write() if writes else store.read() if page is None else page.last_reading()
        with suppress(_RolledBack), opened as db:
            if invocation.call.needs is Auth.SIGNED_IN and (writes or self.parts):
                # An ended session changes and sees nothing. Of a workspace, `enter` checks that.
                require_session(db, invocation.caller)
            access = let_in(services, db, invocation)
            if invocation.call.second_person and access is not None:
                require_no_second_person(db, access.organisation_id, invocation.call)
            self.parts += 1
            ctx = Ctx(services, invocation.caller, db, access, invocation.ids, tries, invocation.cookie)
            yield ctx
            if part is In.TRIAL:
                raise _RolledBack

    def _known(self, ctx: Ctx) -> bytes | None:
        """The answer of the same request, made before."""
        if self.scope is None:
            return None
        return self.services.idempotency.known(ctx.db, self.scope, canonical(self.invocation.request))

    def _once(self, ctx: Ctx, effect: Callable[[], Any]) -> bytes:
        if self.scope is None:
            return self._encoded(effect())
        body = canonical(self.invocation.request)
        return self.services.idempotency.once(
            ctx.db, self.scope, body, lambda: self._encoded(effect()), self._has_secret
        )

    def _has_secret(self) -> bool:
        return bool(getattr(self.value, "secret", None))

    def _encoded(self, value: Any) -> bytes:
        if self.invocation.check is not None:
            self.invocation.check(value)
        self.value = value
        value = value.answer if isinstance(value, Watched) else value
        value = value.items if isinstance(value, Page) else value
        return self.invocation.call.writer.dump_json(value, by_alias=True)


@contextmanager
def context_in(services: "Services", caller: Caller, part: In) -> Iterator[Ctx]:
    """What a page's own use case runs in, which is no call of the API. Raises Unauthenticated where the
    caller's session was ended before a write.
    """
    if part is In.NOTHING:
        yield Ctx(services, caller)
        return
    writes = part in {In.WRITE, In.TRIAL}
    with suppress(_RolledBack), services.store.write() if writes else services.store.read() as db:
        if writes and caller.session_id:
            require_session(db, caller)
        yield Ctx(services, caller, db)
        if part is In.TRIAL:
            raise _RolledBack


def make_in_parts(services: "Services", caller: Caller, steps: Steps[Answer]) -> Answer:
    """A page's own use case in parts, the first in no transaction."""
    part = next(steps)
    while True:
        with context_in(services, caller, part) as ctx:
            try:
                part = steps.send(ctx)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]  # StopIteration does not carry the type


def scope_of(invocation: Invocation, key: str) -> Scope:
    """Of an ``Idempotency-Key``. Keys of a program are separate from those of its maker and of the maker's
    other programs.
    """
    caller, service = invocation.caller, invocation.caller.service
    own = key if service is None else f"service account {service.account_id}: {key}"
    return Scope(caller.user_id, invocation.call.method, invocation.path, own)


def record_refusal(
    services: "Services",
    caller: Caller,
    attempt: tuple[str, str],
    workspace_id: int | None,
    error: errors.CustodyError,
    *,
    is_change: bool,
) -> None:
    """In a transaction of its own, because the refused one was rolled back. ``attempt``: method and path.
    Raises RateLimited: repeated refusals take no more of the writers' time, and of the log, than changes may.
    """
    if not is_change:
        services.rates.writes.take(caller.counted_as)
    with services.store.write() as db:
        access = None if workspace_id is None else _workspace_of(services, db, caller, workspace_id)
        method, path = attempt
        services.tools.audit.record(db, caller, REFUSED[error.code], access, method=method, tried=path)


def _workspace_of(
    services: "Services", db: Session, caller: Caller, workspace_id: int
) -> WorkspaceAccess | None:
    """The workspace for the record of a member's attempt; None for the platform's chain."""
    if caller.service is not None and caller.service.workspace_id == workspace_id:
        # Even if the account was revoked meanwhile.
        return place_of(db, workspace_id)
    try:
        # Even if the session was ended meanwhile.
        return enter(db, replace(caller, session_id=0), workspace_id, ANY_MEMBER, services.tools.clock())
    except (errors.NotFound, errors.PermissionDenied):
        return None


def canonical(request: BaseModel | None) -> bytes:
    return b"" if request is None else request.model_dump_json().encode()
