"""Every endpoint against the OpenAPI document that the platform serves: what it allows, and what it
forbids (P21, P50), to an administrator, a signer, a member with one permission, and a program.

A run draws half of them; ``TEST_EXAMPLES=2`` asks all. ``CUSTODY_SCHEMA_SEED=7 TEST_EXAMPLES=8`` asks for
other requests than each run does.
"""

import logging
import os
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
import requests
import schemathesis
import structlog
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from custody.schemas.call import Call
from custody.schemas.calls import CALLS
from custody.server.people.staff import permissions_of
from custody.server.rules.credentials import NEVER_GIVEN
from tests.support import service_accounts
from tests.support.custody import Desk, ok, open_desk
from tests.support.examples import drawn, examples

CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance,
    response_headers_conformance, negative_data_rejection,
]  # fmt: skip
# What a request is refused for although its schema allows it, by the sentence: rules that a schema has no
# words for. Whatever else is refused as VALIDATION is a fault of the document.
EXPLAINED = {
    "one field asks for, or excludes, another one": (
        "give contract_uid for", "give psbt_id for", "give page or cursor", "the first day is later",
        "the smallest amount is more",
        "exactly one of", "recipients: ", "amounts_sats: ", "coins: ", "amount_sats: ", "sweep: ",
        "another version pays", "psbt_base64: ", "sweep_coins: ", "m: ", "Give fee_rate", "a weekly cycle",
        "This recipient has", "confirming_role_id: ",
        "No member of this workspace has", "A search does not wait",
    ),
    "a text has a meaning, as an address, a path, a URL or an amount": (
        "This is not an address", "The path is", "A level of the path", "The URL", "The amount is",
        "The link", "The data", "After 0x", "must be a telephone number", "must be ''", "No call at",
        "write a network", "write the network", "A program's account ends", "An issuer",
    ),
    "a number that is written as a text has a greatest one": ("must be 9223372036854775807 or less",),
    "what it names is not there, or not so": (
        "The workspace is on", "User ", "The password is wrong", "This token was used", "There is no",
        "member ",
    ),
    "what no program is ever given": ("A program cannot be given",),
    "a password that is guessed too easily": ("This password is guessed",),
    "a schema has no one way to write a character above U+FFFF": ("has a character that not every reader",),
    "JSON can write characters that no text can hold": ("a text holds U+0000",),
    "lengths are counted without blanks at the ends": ("is too short", "must not be empty"),
}  # fmt: skip
# From 2**53 on a number with a point may not be the one that was meant.
INEXACT = re.compile(rb"[0-9]{16,}\.0|[0-9]e")
SEED = int(os.environ.get("CUSTODY_SCHEMA_SEED", "1"))
# For each row and mode. With a row's fields few, more say little.
ADMIN = "admin@example.org"
ADMIN_ROLE = 1
VIEWER = "viewer@example.org"
CALLERS = ("administrator", "signer", "viewer", "program")
# An id that exists leads further in than one by chance.
REAL = {"workspace_id": 1, "workspace_context": 1, "role_id": 2, "user_uuid": 3, "network": "testnet"}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk(tmp_path_factory.mktemp("state")) as opened:
        cycle = {"transaction_limit": "0", "cycle_period": "M", "cycle_day": 1}
        role = {"workspace_id": 1, "name": "Viewer", "permissions": ["VIEW_BALANCES"], **cycle}
        ok(opened.admin.post("/api/v1/create-role", role))
        opened.world.member(opened.workspace_id, VIEWER, "Viewer")
        yield opened


@pytest.fixture(autouse=True)
def quiet() -> None:
    """Thousands of lines of the log say nothing about a failure here."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


@pytest.fixture(scope="module")
def headers(desk: Desk) -> Callable[[], dict[str, dict[str, str]]]:
    """The headers of each caller, signed in anew: some calls end sessions, and one ends a program."""
    world = desk.world

    def signed_in() -> dict[str, dict[str, str]]:
        people = [world.as_user(email) for email in (ADMIN, "bob@example.org", VIEWER)]
        # What earlier requests have left to the administrator's role.
        with world.platform.services.store.read() as db:
            rights = sorted(permissions_of(db, ADMIN_ROLE) - NEVER_GIVEN)
        # Two live programs of a workspace have two names.
        while live:
            ok(service_accounts.revoke(people[0], live.pop()))
        account_id, program = service_accounts.made(world, people[0], rights=rights)
        live.append(account_id)
        return dict(zip(CALLERS, [one.headers for one in (*people, program)], strict=True))

    live: list[int] = []
    return signed_in


@pytest.fixture(scope="module")
def schema(desk: Desk) -> schemathesis.BaseSchema:
    config = schemathesis.Config()
    # A body too large is refused before it is read.
    rejections = config.projects.default.checks.negative_data_rejection
    rejections.expected_statuses = [*rejections.expected_statuses, "413"]
    # The tests add the token: without one nothing is reached.
    config.projects.default.generation.with_security_parameters = False
    return schemathesis.openapi.from_dict(desk.world.platform.asgi.openapi(), config=config)


def test_the_document_is_valid_openapi(schema: schemathesis.BaseSchema) -> None:
    schema.validate()
    assert schema.raw_schema["openapi"].startswith("3.1.")


# What takes nothing cannot be asked wrongly.
ASKED = [(row, GenerationMode.POSITIVE) for row in CALLS] + [
    (row, GenerationMode.NEGATIVE) for row in CALLS if row.shape is not None
]


@pytest.mark.parametrize(
    ("row", "mode"),
    [
        pytest.param(row, mode, id=f"{row.method} {row.path} {mode.value}")
        for row, mode in drawn(ASKED, -(-len(ASKED) // 2), of=__name__)
    ],
)
def test_every_endpoint_keeps_to_the_document(
    row: Call[Any, Any],
    mode: GenerationMode,
    desk: Desk,
    schema: schemathesis.BaseSchema,
    headers: Callable[[], dict[str, dict[str, str]]],
) -> None:
    # A session of their own for each, for some calls end it; after every window of the sign-in's throttles.
    desk.world.clock.advance(hours=1)
    signed_in = headers()

    @seed(SEED)
    @settings(
        max_examples=examples(4), derandomize=SEED == 1, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(
        case=schema[row.path][row.method].as_strategy(generation_mode=mode),
        real=st.booleans(),
        caller=st.sampled_from(CALLERS),
    )
    def asked(case: Case, real: bool, caller: str) -> None:
        if real and mode is GenerationMode.POSITIVE:
            _name_what_exists(case)
        answer = _send(desk.world.http, case, signed_in[caller])
        case.validate_response(answer, checks=CHECKS)
        if mode is GenerationMode.POSITIVE:
            assert not _unexplained(answer), case.as_curl_command()

    asked()


def _unexplained(answer: httpx.Response) -> list[str]:
    """Refusals of what the schema allows, for which there is no reason above."""
    if answer.is_success or answer.json()["code"] not in {"VALIDATION", "MALFORMED_JSON", "BODY_TOO_LARGE"}:
        return []
    told = [fault["detail"] for fault in answer.json()["errors"]] or [answer.json()["detail"]]
    known = tuple(word for words in EXPLAINED.values() for word in words)
    if INEXACT.search(answer.request.content):
        known += ("must be a whole number, without", "A number of the body is not in plain digits")
    return [sentence for sentence in told if not sentence.startswith(known)]


def _name_what_exists(case: Case) -> None:
    for fields in (case.body, case.query):
        if isinstance(fields, dict):
            fields.update({name: value for name, value in REAL.items() if name in fields})


def _send(http: httpx.Client, case: Case, headers: dict[str, str]) -> httpx.Response:
    given = case.as_transport_kwargs(base_url="http://127.0.0.1")
    asked = {**(given.pop("headers", None) or {}), **headers}
    request = requests.Request(**{**given, "headers": asked}).prepare()
    sent = {name: value for name, value in request.headers.items() if name.lower() != "content-length"}
    answer = http.request(request.method, request.url, content=request.body, headers=sent)
    http.cookies.clear()
    answer.elapsed = timedelta(0)
    return answer
