"""The corpus as imported PSBTs: what the bytes reveal is refused at import, and no device shows anything;
what is shown under one id, before the person looked and after (S24).
"""

import base64

import pytest

from multisig import Psbt, signer_progress
from signerd.core import following
from signerd.core.checks.table import JudgedKind, not_compared
from signerd.core.engine import decide
from signerd.core.events import Approved, DeviceFound, Polled
from signerd.core.following import receive
from signerd.core.review import review
from signerd.core.states import State
from signerd.errors import IllegalEvent, InvalidRequest, RefusedByChecks, RequestTooLarge, StaleApproval
from tests.attacks.cases import damage, proposals
from tests.attacks.desk import at_desks
from tests.attacks.people import ALICE
from tests.attacks.recipes.absurd import DAMAGES

# What only a record of the platform's could show to be wrong, or a forward's promise of where it goes.
CLAIMED = frozenset(
    {*not_compared(JudgedKind.IMPORTED), "data", "forward-destination", "forward-profile", "kind-known"}
)
# No token transaction can be imported: ``data`` refuses it.
OF_TOKENS = frozenset(
    {
        *("token-known", "token-call", "token-shape", "token-effect", "token-listed", "token-twice"),
        "token-not-on-screen",
    }
)


def by_its_bytes(proposal) -> set[str]:
    return proposal.refusals - CLAIMED - OF_TOKENS


PLAIN = proposals(lambda p: not p.is_special and p.later is None)
HOSTILE = tuple(p for p in PLAIN if by_its_bytes(p))
# One of the vault's coins and one of the profile's, which every make signs.
HONEST = tuple(
    next(p for p in PLAIN if p.honest and not p.warned and (p.forward is None) is of_vault)
    for of_vault in (True, False)
)
BROKEN = tuple(d for d in DAMAGES if d.outcome)


@at_desks("proposal", HOSTILE)
def test_a_hostile_one_is_refused_at_import_and_the_screen_stays_dark(desk, proposal):
    shown, text = desk.shown, base64.b64encode(proposal.raw).decode()
    with desk.client() as client:
        before = client.imported_psbts()
        told = client.inspect_psbt(text)
        with pytest.raises(RefusedByChecks) as refused:
            client.import_psbt(text)
        assert client.imported_psbts() == before
    refusing = {check.name for check in told.checks if check.outcome == "refuse"}
    # A proposal names its vault. An imported PSBT does not: coins without our origins are of no known vault.
    assert by_its_bytes(proposal) <= refusing or refusing == {"imported-coins"}
    assert all(f"[{name}]" in str(refused.value) for name in refusing)
    assert shown.prompts == []


@at_desks("entry", BROKEN)
def test_s23_what_cannot_be_read_is_refused_and_the_daemon_goes_on(desk, entry):
    shown, text = desk.shown, base64.b64encode(damage(entry)).decode()
    with desk.client() as client:
        before = client.imported_psbts()
        with pytest.raises((RefusedByChecks, InvalidRequest, RequestTooLarge)) as refused:
            client.import_psbt(text)
        assert client.imported_psbts() == before
    assert refused.type is not RefusedByChecks or "[psbt-readable]" in str(refused.value)
    assert shown.prompts == []


@pytest.mark.parametrize("proposal", HONEST, ids=str)
def test_an_honest_one_is_shown_on_the_device_and_handed_back_signed(desk, proposal):
    shown, text = desk.shown, base64.b64encode(proposal.raw).decode()
    with desk.client() as client:
        imported = client.import_psbt(text)
        view = client.proposal(imported.psbt_id)
        client.approve(imported.psbt_id, view.digest, view.to_acknowledge)
        desk.await_state(imported.psbt_id, State.HANDED_OVER, State.INTERRUPTED)
        done = client.imported_psbt(imported.psbt_id)
        again = client.import_psbt(text)
    assert shown.prompts
    assert done.state == "handed-over", done.reason
    signed = Psbt.parse(done.signed_psbt)
    assert signed.tx == proposal.parsed.tx
    assert signer_progress(signed, proposal.policy, ALICE.fingerprint).is_complete
    # Complete with one signature where the coins are the person's own.
    assert (done.final is not None) is (proposal.forward is not None)
    assert again == done
    assert desk.platform.told() == []


AGAIN = proposals(lambda p: p.later is not None)
ALTERED = tuple(p for p in AGAIN if not p.honest)
SAME = tuple(p for p in AGAIN if p.honest)


def looked_at(proposal):
    """Received and shown; the record, and the person's yes to what was shown."""
    around = proposal.review_context()
    record = receive(proposal.snapshot(), around).record
    assert record.state is State.WAITING_PERSON
    return record, Approved(review(record.snapshot, around).digest), around


@pytest.mark.parametrize("is_approved", [False, True])
@pytest.mark.parametrize("proposal", ALTERED, ids=str)
def test_s24_altered_before_the_yes_or_between_the_yes_and_the_device(proposal, is_approved):
    record, yes, around = looked_at(proposal)
    if is_approved:
        record = decide(record, yes, around).record
        assert record.state is State.WAITING_DEVICE
    record = decide(record, Polled(proposal.looked_at_again), around).record
    assert (record.state, record.approval, record.snapshot.psbt) == (State.QUARANTINED, None, proposal.raw)
    assert record.alarm
    for event in (yes, DeviceFound("device")):
        with pytest.raises(IllegalEvent):
            decide(record, event, around)


@pytest.mark.parametrize("proposal", SAME, ids=str)
def test_s24_the_same_transaction_goes_on(proposal):
    record, yes, around = looked_at(proposal)
    record = decide(record, Polled(proposal.looked_at_again), around).record
    record = decide(record, yes, around).record
    step = decide(record, DeviceFound("device"), around)
    assert step.record.state is State.SIGNING


@pytest.mark.parametrize("proposal", ALTERED, ids=str)
def test_s24_without_the_look_at_the_transaction_the_yes_still_does_not_fit(proposal, monkeypatch):
    """The next layer: an approval is bound to the digest of what was shown."""
    monkeypatch.setattr(following, "identity_of", lambda _psbt: "the same")
    record, yes, around = looked_at(proposal)
    record = decide(record, Polled(proposal.looked_at_again), around).record
    with pytest.raises(StaleApproval):
        decide(record, yes, around)
