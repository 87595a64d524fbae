"""The specification's endpoints, records and conditions against what is documented and a running platform."""

import json
import re
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from tests.custody.spec.conformance import Comparison
from tests.custody.spec.page import PAGE, render
from tests.custody.spec.reading import Specification, conditions
from tests.custody.spec.shapes import Document
from tests.custody.spec.told import REASONS, TOLD


def test_every_endpoint_is_exact_or_has_its_reason(comparison: Comparison) -> None:
    """Asked with what the specification names, and with nothing else."""
    assert len(comparison.rows) == 42
    wrong = {row.path: row.wrong for row in comparison.rows if row.wrong}
    assert wrong.keys() == REASONS.keys(), wrong


def _without(name: str, field: str) -> Any:
    return lambda schemas: schemas[name]["properties"].pop(field)


def _retyped(name: str, field: str) -> Any:
    return lambda schemas: schemas[name]["properties"].update({field: {"type": "boolean"}})


def _required(name: str, field: str) -> Any:
    return lambda schemas: schemas[name]["required"].append(field)


@pytest.mark.parametrize(
    ("spoil", "path"),
    [
        (_without("CreatePsbtRequest", "op_return"), "/api/v1/create-psbt"),
        (_without("UpdateVaultRequest", "cycle_day"), "/api/v1/update-vault"),
        (_without("Vault", "witness_script_hex"), "/api/v1/list-wallets"),
        (_retyped("Contract", "decimals"), "/api/v1/contract"),
        (_required("CallContractRequest", "priority"), "/api/v1/call-contract"),
    ],
)
def test_a_document_that_says_something_else_is_found_out(
    comparison: Comparison, spoil: Any, path: str
) -> None:
    raw = deepcopy(comparison.document.raw)
    spoil(raw["components"]["schemas"])
    assert path in {row.path for row in replace(comparison, document=Document(raw)).rows if row.wrong}


def test_every_condition_came_to_be(comparison: Comparison, specification: Specification) -> None:
    told = conditions(specification.text)
    assert len(told) == 8
    assert comparison.day.told.keys() == told.keys()


def test_the_page_is_what_was_found(comparison: Comparison) -> None:
    assert PAGE.read_text() == render(comparison), "python -m tests.custody.spec writes it anew"


def test_what_is_told_in_sentences_stands_there(specification: Specification) -> None:
    text = " ".join(specification.text.split())
    assert TOLD.keys() <= specification.calls.keys()
    assert [one.words for each in TOLD.values() for one in each if one.words not in text] == []


def test_every_bound_of_an_integer_is_written_as_one(comparison: Comparison) -> None:
    """9.223372036854776e+18 is more than the largest int64, and a generated client would take it."""
    text = json.dumps(comparison.document.raw)
    assert '"maximum": 9223372036854775807' in text
    assert '"minimum": -9223372036854775808' in text
    assert not re.findall(r'"(?:exclusive)?[mM](?:ini|axi)mum": -?[0-9.]+(?:e|\.0\b)', text)
