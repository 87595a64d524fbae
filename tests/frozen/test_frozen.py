"""What must not change: both OpenAPI documents byte for byte, stored words, hashes, exit statuses.

An intended change replaces the file beside this one: ``python -m tests.frozen`` writes them.
"""

import json
from pathlib import Path

import pytest

from custody.server.rules.audit import GENESIS, AuditRow, event_hash
from signerd.core.review import review
from tests.frozen.documents import loopback_document, platform_document
from tests.frozen.words import words
from tests.support.desk import review_context, snapshot_of, spend

FROZEN = Path(__file__).parent
WORDS = json.loads((FROZEN / "words.json").read_text(encoding="utf-8"))


def test_the_platforms_openapi_document_is_what_it_was(tmp_path):
    assert platform_document(tmp_path) == (FROZEN / "platform.openapi.json").read_text(encoding="utf-8")


def test_the_loopbacks_openapi_document_is_what_it_was():
    assert loopback_document() == (FROZEN / "loopback.openapi.json").read_text(encoding="utf-8")


# Read from the whole source in the test only: several processes collect this module.
@pytest.mark.parametrize("what", sorted(WORDS))
def test_no_word_that_is_stored_or_relied_on_is_gone_or_another(what):
    known, today = WORDS[what], words()[what]
    if isinstance(known, dict):
        assert {name: json.loads(json.dumps(today)).get(name) for name in known} == known
    else:
        assert set(known) <= set(today)


def test_what_an_approval_is_bound_to_hashes_as_it_did():
    found = review(snapshot_of(spend()), review_context())
    # A changed check or sentence changes the digest: update it here, and mention it in CHANGELOG.md.
    assert found.digest == "80d5b6cdf90a30b4658d1adf067febff1be2b8feefe6b7c191d3c0f98bf3272e"


def test_the_platforms_audit_chain_hashes_as_it_did():
    row = AuditRow(
        event_uid="event-1",
        chain_id="workspace:7",
        position=1,
        org_uid="3",
        workspace_uid="7",
        timestamp="2026-01-02T03:04:05.678Z",
        category="SIGNING",
        action="SIGNATURE_SUBMITTED",
        description="A signature of „p-1“ was submitted",
        facts='{"proposal":"p-1"}',
        user_uuid=5,
        user_name="Alice",
        role_uid="2",
        trace_id="trace",
    )
    assert (
        event_hash(GENESIS, row).hex() == "fa2d7ba1cde26d66938d71e637981146ecfc944d136af1f668ca324daea79248"
    )
