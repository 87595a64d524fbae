"""The judge of known weaknesses, with answers as pip-audit 2.10 writes them."""

import json
from dataclasses import replace
from datetime import date, timedelta

import pytest

from tools.audit import EXCEPTIONS, LOCKS, ROOT, exceptions_of, faults_of, locked_in, main, not_asked, too_old

ANSWER = json.loads(
    '{"dependencies": [{"name": "cbor2", "version": "5.7.1", "vulns": ['
    '{"id": "PYSEC-2025-109", "fix_versions": ["5.8.0"], "aliases": ["CVE-2025-68131"]},'
    ' {"id": "GHSA-3c37-wwvx-h642", "fix_versions": ["5.9.0"], "aliases": ["CVE-2026-26209"]}]},'
    ' {"name": "click", "version": "8.3.0", "vulns": []},'
    ' {"name": "idna", "skip_reason": "Dependency not found on PyPI and could not be audited: idna (3.11)"}],'
    ' "fixes": []}'
)
OURS = exceptions_of(EXCEPTIONS.read_text())
LOCKED = [pair for lock in LOCKS for pair in locked_in((ROOT / lock).read_text())]


def faults(answer=ANSWER, exceptions=OURS, locked=LOCKED):
    return list(faults_of(answer, exceptions, locked))


def test_the_exceptions_are_those_of_what_is_locked_and_nothing_else_is_excepted():
    assert faults() == []
    assert len(LOCKED) > 50
    assert not_asked(ANSWER) == ["idna"]


def test_a_weakness_that_is_on_no_list_is_a_fault():
    [fault] = faults(exceptions=OURS[:1])
    assert fault == "cbor2 5.7.1 has CVE-2026-26209, GHSA-3c37-wwvx-h642, fixed in 5.9.0."
    narrower = [replace(each, versions=each.versions.__class__("<5.7")) for each in OURS]
    assert len([fault for fault in faults(exceptions=narrower) if " has " in fault]) == 2


def test_an_exception_that_applies_no_more_is_a_fault():
    known, other = OURS
    withdrawn = {"dependencies": [{"name": "cbor2", "version": "5.7.1", "vulns": []}]}
    assert [fault.rpartition(": ")[2] for fault in faults(withdrawn)] == [
        "the database does not have it."
    ] * 2
    newer = [("cbor2", "5.9.0")]
    assert len(faults({"dependencies": []}, (known, other), newer)) == 2
    # What was not asked says nothing.
    assert faults({"dependencies": [{"name": "cbor2", "skip_reason": "no answer"}]}) == []


def test_an_exception_is_read_again_within_90_days():
    read_on = OURS[0].date
    assert list(too_old(OURS[:1], read_on + timedelta(days=90))) == []
    assert len(list(too_old(OURS[:1], read_on + timedelta(days=91)))) == 1
    assert read_on >= date(2026, 12, 1)


@pytest.mark.parametrize(("flags", "status"), [((), 0), (("--release",), 1)])
def test_without_an_answer_the_gate_says_so_and_a_release_fails(tmp_path, capsys, flags, status):
    assert main(str(tmp_path / "no-such-program"), *flags) == status
    assert capsys.readouterr().out.startswith("Not asked: ")
