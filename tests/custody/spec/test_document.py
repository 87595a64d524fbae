"""The specification's words against the OpenAPI document that the platform serves."""

import json
import re

from tests.custody.spec.places import MAY_BE_ABSENT, PLACES
from tests.custody.spec.reading import Call, Specification
from tests.custody.spec.shapes import EACH, Document

# Where the specification does not show a method, the contract does.
METHODS = {
    "/auth/login": "POST",
    "/api/v1/create-token": "POST",
    "/api/v1/get-workspace-whitelist": "GET",
    "/api/v1/export-audit-logs": "GET",
}
# Told in sentences, not in a form that can be read.
ANSWERED = {
    "/api/v1/export-audit-logs": {"csv": "string"},
    "/api/v1/get-pending-workspace-invites": {"InviteUID": ""},
    "/api/v1/create-psbt": {"psbt_id": "string", "psbt_base64": "string"},
}


def calls_of(specification: Specification) -> list[Call]:
    return [call for _, call in sorted(specification.calls.items())]


def test_every_named_endpoint_is_served_with_its_method(
    specification: Specification, document: Document
) -> None:
    wanted = {call.path: call.method or METHODS[call.path] for call in calls_of(specification)}
    served = {path: document.operation(path)[0] for path in wanted if path in document.paths}
    assert served == wanted


def test_every_field_that_is_asked_for_has_its_name_and_type(
    specification: Specification, document: Document
) -> None:
    wrong = []
    for call in calls_of(specification):
        fields, required = document.asked(call.path) if call.asked else ({}, set())
        for name, asked in call.asked.items():
            if name not in fields:
                wrong.append(f"{call.path} takes no {name}")
            elif not document.is_a(fields[name], asked.type, may_be_null=not asked.required):
                wrong.append(f"{call.path}: {name} is no {asked.type}: {fields[name]}")
            elif (name in required) is not asked.required:
                wrong.append(f"{call.path}: {name} is {'' if name in required else 'not '}required")
    assert not wrong


def test_nothing_else_is_required(specification: Specification, document: Document) -> None:
    """What the specification asks for is enough to call."""
    beyond = {
        call.path: more
        for call in calls_of(specification)
        if call.asked and (more := document.asked(call.path)[1] - set(call.asked))
    }
    assert not beyond


def test_every_answer_carries_what_it_should(specification: Specification, document: Document) -> None:
    wrong = []
    for call in calls_of(specification):
        for name, words in (call.answered | ANSWERED.get(call.path, {})).items():
            shapes = document.answered(call.path) + document.answered(call.path, EACH)
            found = [shape["properties"][name] for shape in shapes if name in shape.get("properties", ())]
            if not found or not all(document.is_a(shape, words) for shape in found):
                wrong.append(f"{call.path} answers with no {name} ({words}): {found}")
    assert not wrong


def test_every_record_has_its_fields_wherever_it_is_shown(
    specification: Specification, document: Document
) -> None:
    wrong = []
    for record, places in PLACES.items():
        for path, trail in places:
            shapes = document.answered(path, *trail)
            problems = [_missing(document, shape, record, specification.records[record]) for shape in shapes]
            if not problems or all(problems):
                wrong.append(f"{record} of {path}: {problems}")
    assert not wrong


def _missing(document: Document, shape: dict, record: str, fields: dict[str, str]) -> list[str]:
    properties = shape.get("properties", {})
    return [
        f"{name}: {words}"
        for name, words in fields.items()
        if name not in properties
        or not document.is_a(properties[name], words, may_be_null=(record, name) in MAY_BE_ABSENT)
    ]


def test_every_bound_of_an_integer_is_written_as_one(document: Document) -> None:
    """9.223372036854776e+18 is more than the largest int64, and a generated client would take it."""
    text = json.dumps(document.raw)
    assert '"maximum": 9223372036854775807' in text
    assert '"minimum": -9223372036854775808' in text
    assert not re.findall(r'"(?:exclusive)?[mM](?:ini|axi)mum": -?[0-9.]+(?:e|\.0\b)', text)
