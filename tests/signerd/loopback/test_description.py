"""Every row against the OpenAPI document that the daemon itself serves: as the person, as an app, without
a session (L2, L13). A run draws half of the requests; ``TEST_EXAMPLES=2`` sends all.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from inspect import signature

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from signerd.callers import GRANTABLE, PAGE, Right
from signerd.core.states import State
from signerd.endpoint import HOST, PREFIX, socket_path
from signerd.loopback.access.gates import AppRates
from signerd.loopback.access.sessions import PageSessions
from signerd.loopback.answers import ROUTES, Context
from signerd.loopback.binding import arguments
from signerd.loopback.events import Streams
from tests.support.daemons import make_config
from tests.support.examples import drawn, examples
from tests.support.served import Served, make_outer, served_daemon

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
# For each row and mode. With a row's fields few, more say little.
EXAMPLES = examples(4)
# An id that exists leads further in than one by chance.
REAL = {"psbt_id": "p-1", "vault_id": "vault-1"}
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
# Its answers do not end: tests/signerd/loopback/test_serve.py reads them.
STREAM = "/events"


@dataclass
class Callers:
    """The same daemon as each of them reaches it."""

    daemon: Served
    schema: schemathesis.BaseSchema
    person: httpx.Client
    app: httpx.Client
    every: httpx.Client
    stranger: httpx.Client


@pytest.fixture(scope="module")
def callers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callers]:
    folder = tmp_path_factory.mktemp("described")
    patch = pytest.MonkeyPatch()
    # How often an app may ask is another test's matter.
    patch.setattr(AppRates, "take", lambda *_: None)
    with (
        patch.context(),
        served_daemon(folder / "s", make_outer(folder), port=0, config=make_config()) as daemon,
    ):
        daemon.until(lambda: [r.state for r in daemon.service.journal.records()] == [State.WAITING_PERSON])
        url = f"http://127.0.0.1:{daemon.service.page_address.port}"
        reads, every = (
            {"Authorization": f"Bearer {daemon.on_loop(_paired, daemon.service, name, rights)}"}
            for name, rights in (("Reader", {Right.READ}), ("Everything", GRANTABLE))
        )
        transport = httpx.HTTPTransport(uds=str(socket_path(daemon.state)))
        with (
            httpx.Client(transport=transport, base_url=f"http://{HOST}", trust_env=False) as person,
            httpx.Client(base_url=url, headers=reads, trust_env=False) as app,
            httpx.Client(base_url=url, headers=every, trust_env=False) as every,
            httpx.Client(base_url=url, trust_env=False) as stranger,
        ):
            document = person.get(f"{PREFIX}/openapi.json").json()
            yield Callers(daemon, schemathesis.openapi.from_dict(document), person, app, every, stranger)


async def _paired(service, name: str, rights) -> str:
    asked = await service.apps.ask(name, frozenset(map(str, rights)), None)
    await service.apps.accept(asked.id, asked.code, rights=None, days=1)
    return (await service.apps.collect(asked.id, asked.secret)).token


def _asks(row, mode: GenerationMode, callers: Callers, count: int):
    """The decorator for a test's inner function, which gets a case of this row."""
    operation = callers.schema[PREFIX + row.path][row.method]

    def decorate(inner):
        return seed(1)(
            settings(
                max_examples=count, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
            )(given(case=operation.as_strategy(generation_mode=mode))(inner))
        )

    return decorate


def _send(http: httpx.Client, case: Case) -> httpx.Response:
    asked = case.as_transport_kwargs(base_url=str(http.base_url).rstrip("/"))
    request = requests.Request(**asked).prepare()
    # Its own, and none of the other program's.
    ours = {
        "content-length",
        "user-agent",
        "accept",
        "accept-encoding",
        "connection",
        "authorization",
        "host",
    }
    sent = {name: value for name, value in request.headers.items() if name.lower() not in ours}
    answer = http.request(request.method, request.url, content=request.body, headers=sent)
    answer.elapsed = timedelta(0)
    return answer


def test_what_answers_a_call_takes_what_is_described(callers: Callers) -> None:
    """The type checker does not see the arguments of one that is told who calls."""
    context = Context(callers.daemon.service, Streams(), PageSessions(time.monotonic), PAGE)
    for call, to in ROUTES.items():
        signature(to(context)).bind(**signature(call.takes).parameters)


# What takes nothing cannot be asked wrongly.
ASKED = [
    (row, mode)
    for row in ROUTES
    for mode in MODES
    if row.path != STREAM
    if mode is GenerationMode.POSITIVE or arguments(row)
]


@pytest.mark.parametrize(
    ("row", "mode"),
    [
        pytest.param(row, mode, id=f"{row.method} {row.path} {mode.value}")
        for row, mode in drawn(ASKED, -(-len(ASKED) // 2), of=__name__)
    ],
)
def test_every_row_keeps_to_the_document_for_the_person(row, mode: GenerationMode, callers: Callers) -> None:
    checks = [*CHECKS, negative_data_rejection] if mode is GenerationMode.NEGATIVE else CHECKS

    @_asks(row, mode, callers, EXAMPLES)
    def asked(case: Case) -> None:
        if mode is GenerationMode.POSITIVE:
            named = case.path_parameters or {}
            named.update({name: real for name, real in REAL.items() if name in named})
        case.validate_response(_send(callers.person, case), checks=checks)

    asked()


@pytest.mark.parametrize("row", ROUTES, ids=lambda row: f"{row.method} {row.path}")
def test_l2_l13_no_answer_goes_beyond_the_rights_of_who_asks(row, callers: Callers) -> None:
    before = callers.daemon.service.feed.last

    @_asks(row, GenerationMode.POSITIVE, callers, 2)
    def asked(case: Case) -> None:
        for http, rights, refusal in (
            (callers.stranger, {Right.ANYONE}, 401),
            (callers.app, {Right.ANYONE, Right.READ}, 403),
            (callers.every, {Right.ANYONE, *GRANTABLE}, 403),
        ):
            if row.needs in rights and (row.path == STREAM or http is callers.every):
                continue
            answer = _send(http, case)
            case.validate_response(answer, checks=CHECKS)
            assert (answer.status_code == refusal) or row.needs in rights

    asked()
    if row.needs not in {Right.ANYONE, Right.READ}:
        assert callers.daemon.service.feed.last == before
