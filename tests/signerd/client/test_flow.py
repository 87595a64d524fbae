"""Calls sent and answers read: without their shapes, as the command line reads them."""

import json

import pytest

from signerd.asking import parse
from signerd.client import DaemonClient
from signerd.errors import DaemonFailed
from signerd.shapes import AuditReport
from tests.support.served import served_script

REPORT = AuditReport(entries=3, head="00", at=None, fault="one is missing")


def test_an_answer_has_the_attributes_of_its_shape_and_is_printed_as_it_came(tmp_path):
    with served_script(tmp_path / "s", verify_audit=REPORT), DaemonClient.plain(tmp_path / "s") as daemon:
        found = daemon.verify_audit()
    assert (found.entries, found.at, found.fault) == (3, None, "one is missing")
    assert found.as_json() == REPORT.model_dump(mode="json")


def test_fields_inside_fields_and_lists():
    told = {"checks": [{"name": "fee", "figures": {"sats": 1}}], "keys": "a field, and no method"}
    found = parse(json.dumps(told))
    assert found.checks[0].figures.sats == 1
    assert "sats" in found.checks[0].figures
    assert found.keys == told["keys"]
    assert found.as_json() == told


def test_a_field_that_is_not_there_is_told_as_another_version():
    with pytest.raises(DaemonFailed, match="another version of signerd"):
        _ = parse("{}").version


@pytest.mark.parametrize("content", [b"", b"not json", b"1", b'"text"', b"null", b"[" * 100_000, b"\xff\xfe"])
def test_what_is_no_answer_is_refused(content):
    with pytest.raises(ValueError):
        parse(content)
