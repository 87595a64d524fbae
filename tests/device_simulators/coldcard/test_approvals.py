"""The request that the virtual Coldcard asks its person about."""

import pytest

from device_simulators.coldcard.approvals import REPLACES, TRANSITIONS, Event, Kind, Pending, State
from device_simulators.coldcard.replies import IllegalStep, PromptOpen

STEPS = {
    Event.BEGIN: lambda pending: pending.begin(Kind.TRANSACTION),
    Event.FINISH: lambda pending: pending.finish(b"strx"),
    Event.REFUSE: lambda pending: pending.refuse(),
    Event.FAIL: lambda pending: pending.fail("Invalid PSBT"),
    Event.COLLECT: lambda pending: pending.collect(),
    Event.DISCARD: lambda pending: pending.discard(),
}


@pytest.mark.parametrize("event", Event)
@pytest.mark.parametrize("state", State)
def test_every_step_is_the_tables_or_illegal(state, event):
    pending = Pending(state, Kind.TRANSACTION)
    if event is Event.BEGIN and state is State.ASKING:
        assert pending.begin(Kind.TRANSACTION).state is State.ASKING  # its own kind is replaced
    elif (state, event) in TRANSITIONS:
        assert STEPS[event](pending).state is TRANSITIONS[state, event]
    else:
        with pytest.raises(IllegalStep):
            STEPS[event](pending)


@pytest.mark.parametrize("open_kind", Kind)
@pytest.mark.parametrize("new_kind", Kind)
def test_an_open_prompt_makes_others_wait(open_kind, new_kind):
    pending = Pending().begin(open_kind)
    if open_kind in REPLACES[new_kind]:
        assert pending.begin(new_kind).kind is new_kind
    else:
        with pytest.raises(PromptOpen):
            pending.begin(new_kind)


def test_an_uncollected_outcome_gives_way_and_is_forgotten():
    pending = Pending().begin(Kind.TEXT).finish(b"smrx").begin(Kind.TRANSACTION)
    assert (pending.state, pending.kind, pending.reply) == (State.ASKING, Kind.TRANSACTION, b"")


def test_a_signed_transaction_keeps_the_screen_until_it_is_collected():
    signed = Pending().begin(Kind.TRANSACTION).finish(b"strx")
    with pytest.raises(PromptOpen):
        signed.begin(Kind.TEXT)
    assert signed.begin(Kind.TRANSACTION).state is State.ASKING
    assert signed.collect().begin(Kind.TEXT).state is State.ASKING
