"""Calls that run in parts: outside the write lock first, and again where a commit overtook them."""

from collections.abc import Callable

import pytest

from custody.schemas.call import Call
from custody.schemas.calls import CALLS
from custody.schemas.common import Done, IntId, Request
from custody.server import calls
from custody.server.calls import Ctx, In, Invocation, Steps, answer, serves_in_parts
from custody.server.errors import PermissionDenied
from custody.server.requests.changes import MAX_TRIES, OutdatedDraft
from custody.server.rules.audit import Event
from tests.support.platform import As, World


class Workspace(Request):
    workspace_id: IntId


Part = Callable[[Ctx], None]


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Call]:
    """Declares and serves a call of these parts."""
    monkeypatch.setattr(calls, "_IN_PARTS", {})

    def declared(before: Part, within: Part, after: Part | None = None) -> Call:
        call = Call("POST", "/api/v1/try", Workspace, Done, "", frozenset())

        @serves_in_parts(call)
        def made(ctx: Ctx, _: Workspace) -> Steps[Done]:
            before(ctx)
            ctx = yield In.WRITE
            within(ctx)
            if after is not None:
                ctx = yield In.NOTHING
                after(ctx)
            return Done()

        return call

    return declared


@pytest.fixture
def caller(world: World, alice: As):
    token = alice.headers["Authorization"].removeprefix("Bearer ")
    return world.caller(token)


def held(world: World) -> bool:
    return world.platform.services.store._turn.locked()


def ask(world: World, call: Call, caller):
    return answer(world.platform.services, Invocation(call, Workspace(workspace_id=1), caller))


def test_only_the_part_that_writes_holds_the_lock(world, caller, parts) -> None:
    seen = []
    note = lambda _ctx: seen.append(held(world))  # noqa: E731
    answered = ask(world, parts(note, note, note), caller)
    assert (seen, answered.content) == ([False, True, False], b'{"success":true}')


def test_what_was_overtaken_begins_again_and_ends_inside_the_lock(world, caller, parts) -> None:
    tries = []

    def within(ctx: Ctx) -> None:
        if ctx.tries < MAX_TRIES:
            raise OutdatedDraft

    ask(world, parts(lambda ctx: tries.append((ctx.tries, held(world))), within), caller)
    assert tries == [*((each, False) for each in range(MAX_TRIES)), (MAX_TRIES, True)]


def test_a_trial_leaves_nothing_however_often_it_was_overtaken(world, caller, monkeypatch) -> None:
    monkeypatch.setattr(calls, "_IN_PARTS", {})
    call = Call("POST", "/api/v1/try", Workspace, Done, "", frozenset())

    @serves_in_parts(call)
    def made(ctx: Ctx, _: Workspace) -> Steps[Done]:
        tries = ctx.tries
        ctx = yield In.TRIAL
        ctx.event(Event("TRIED", "// never"))
        ctx = yield In.WRITE
        ctx.event(Event("DONE", "// once"))
        if tries < MAX_TRIES:
            raise OutdatedDraft
        return Done()

    ask(world, call, caller)
    assert [each for each in world.audit_actions("workspace:1") if each in {"TRIED", "DONE"}] == ["DONE"]


def test_a_refusal_is_recorded_and_what_it_did_is_rolled_back(world, caller, parts) -> None:
    def refused(ctx: Ctx) -> None:
        ctx.event(Event("DONE", "// never"))
        raise PermissionDenied("no")

    with pytest.raises(PermissionDenied):
        ask(world, parts(lambda _: None, refused), caller)
    assert world.audit_actions("workspace:1")[-1] == "PERMISSION_DENIED"
    assert "DONE" not in world.audit_actions("workspace:1")


def test_every_declared_call_is_served_once() -> None:
    served = (*calls._WHOLE, *calls._IN_PARTS)
    assert sorted(call.path for call in CALLS) == sorted(call.path for call in served)
