"""A token's payload where a transaction is inspected: decoded from the PSBT's own bytes, or refused."""

from dataclasses import fields

import pytest

from multisig import (
    CHANGE,
    ChangeTo,
    Network,
    Severity,
    TxOut,
    build_psbt,
    inspect,
    inspection,
    op_return_script,
    sats,
)
from multisig.inspection import FindingCode
from multisig.tokens import Function, encode_payload, token_of
from tests.multisig.tokens.samples import OWNER, bytecode, call
from tests.support.vectors import own
from tests.support.wallets import fund, make_vault

VAULT = make_vault()
TRANSFER = call(Function.TRANSFER, amount=1250, address=OWNER)


def look(*carried, value=0):
    data = [TxOut(sats(value), op_return_script(item)) for item in carried]
    outputs = [ChangeTo(sats(99_000 - value), CHANGE, 0), *data]
    return inspect(build_psbt(VAULT, [fund(VAULT, 100_000)], outputs, 0), VAULT, network=Network.REGTEST)


@pytest.mark.parametrize("vector", own("tokens/payloads_valid.json"))
def test_a_payload_is_decoded_beside_its_data_s13(vector):
    data = bytes.fromhex(vector["hex"])
    seen = look(data)
    (carried,) = seen.op_returns
    assert (seen.ok, carried.data, encode_payload(carried.token)) == (True, data, data)


@pytest.mark.parametrize(
    "vector", own("tokens/payloads_invalid.json", lambda v: v["hex"].startswith("435054"))
)
def test_data_that_poses_as_a_token_is_refused_s10(vector):
    data = bytes.fromhex(vector["hex"])[:80]
    seen = look(data)
    (finding,) = seen.findings
    assert (finding.code, finding.severity) == ("token-payload-invalid", Severity.REFUSE)
    assert (finding.subject, seen.ok) == ("output 1", False)
    assert finding.sentence.startswith("The data begins like a token's and is not valid: ")
    assert [(item.data, item.token) for item in seen.op_returns] == [(data, None)]


def test_a_payload_that_destroys_bitcoin_or_has_company_is_refused_s10():
    paid = look(encode_payload(TRANSFER), value=546)
    assert [finding.code for finding in paid.findings] == [FindingCode.OP_RETURN_BURNS]
    two = look(encode_payload(TRANSFER), encode_payload(call(Function.PAUSE)))
    assert [finding.code for finding in two.findings] == [FindingCode.OP_RETURN_MULTIPLE]


@pytest.mark.parametrize("payload", [TRANSFER, bytecode().deployment])
def test_the_digest_covers_every_part_of_a_payload_s24(payload, monkeypatch):
    """Each part in turn is read as something else from the same bytes."""
    data, digests = encode_payload(payload), set()
    for name in [None, *(member.name for member in fields(payload))]:
        other = token_of(data)
        if name is not None:
            object.__setattr__(other, name, "another")
        monkeypatch.setattr(inspection.inputs_and_outputs, "token_of", lambda data, other=other: other)
        digests.add(look(data).digest)
    assert len(digests) == 1 + len(fields(payload))


def test_the_digest_of_a_token_call_never_changes_unnoticed():
    """Approvals are stored: a change of what is hashed asks members again, and changes this line."""
    assert (
        look(encode_payload(TRANSFER)).digest
        == "f76832dda5c286254704221d87f51a3483d286bf0ef625efca01a9639532a26a"
    )
