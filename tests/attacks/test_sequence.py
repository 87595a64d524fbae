"""S24: what the platform shows under one id, before the person looked and after; at every moment until the
device is asked.
"""

import pytest

from signerd.core import following
from signerd.core.engine import decide
from signerd.core.events import Approved, DeviceFound, Polled
from signerd.core.following import receive
from signerd.core.review import review
from signerd.core.states import State
from signerd.errors import IllegalEvent, StaleApproval
from tests.attacks.cases import proposals

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
