"""The specification's endpoints, records and conditions against what is documented and a running platform."""

import json
import re

from tests.custody.spec.conformance import Comparison
from tests.custody.spec.page import PAGE, render
from tests.custody.spec.reading import Specification, conditions


def test_every_endpoint_is_exact(comparison: Comparison) -> None:
    """Asked with what the specification names, and with nothing else."""
    assert len(comparison.rows) == 42
    assert {row.path: row.wrong for row in comparison.rows if row.wrong} == {}


def test_every_condition_came_to_be(comparison: Comparison, specification: Specification) -> None:
    told = conditions(specification.text)
    assert len(told) == 8
    assert comparison.day.told.keys() == told.keys()


def test_the_page_is_what_was_found(comparison: Comparison) -> None:
    assert PAGE.read_text() == render(comparison), "python -m tests.custody.spec writes it anew"


def test_every_bound_of_an_integer_is_written_as_one(comparison: Comparison) -> None:
    """9.223372036854776e+18 is more than the largest int64, and a generated client would take it."""
    text = json.dumps(comparison.document.raw)
    assert '"maximum": 9223372036854775807' in text
    assert '"minimum": -9223372036854775808' in text
    assert not re.findall(r'"(?:exclusive)?[mM](?:ini|axi)mum": -?[0-9.]+(?:e|\.0\b)', text)
