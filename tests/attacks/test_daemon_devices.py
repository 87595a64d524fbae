"""S18 and S19 through the daemon; and what its device would be asked for were a check not there."""

import pytest

from device_simulators.faults import Faults
from device_simulators.panel import Decision, Prompt
from signerd.core.states import State
from tests.attacks.cases import entries, proposals, sound
from tests.attacks.desk import desk_with
from tests.attacks.guards import switch_off
from tests.attacks.people import HOLDERS
from tests.conformance import makes

MISBEHAVIOURS = entries("misbehaviours")
PAIRS = [
    (entry, (makes.FAKES if entry.swaps else makes.VIRTUAL)[number % 3])
    for number, entry in enumerate(MISBEHAVIOURS)
]
# The first attack of each number that nothing of signerd stops but the check that is taken away.
UNGUARDED = {
    p.attack.number: p
    for p in reversed(
        proposals(lambda p: p.off and not p.then and not p.is_special and p.handover == "clean")
    )
}
# It believes its host: nothing that a maker's own firmware would notice hides what a missing check lets
# through.
PLAYED = pytest.mark.parametrize("desk", makes.FAKES[:1], indirect=True, ids=makes.named)


def ids(value) -> str:
    return makes.named(value) if isinstance(value, makes.Make) else str(value)


def swapping(desk, seed):
    """A host that gives another passphrase while the person looks."""

    def decide(prompt: Prompt) -> Decision:
        if prompt.kind == "sign-total":
            desk.rig.device.seed = seed
        return Decision.YES

    return decide


@pytest.mark.parametrize(("entry", "make"), PAIRS, ids=ids)
def test_s18_s19_only_sound_signatures_of_the_right_device_are_submitted(entry, make, folder):
    proposal = sound()
    with desk_with(make, folder, seed=HOLDERS[entry.holds]) as desk:
        desk.rig.device.faults = Faults.parse(entry.faults)
        if entry.swaps:
            desk.rig.panel.script = swapping(desk, HOLDERS[entry.swaps])
        view, shown = desk.offer(proposal.snapshot()), desk.shown
        if not entry.asks:
            desk.say_yes(view)
            desk.rounds(3)
            assert desk.state_of(proposal.psbt_id) is State.WAITING_DEVICE
        else:
            assert desk.approve(view) is None
            ended = State.SUBMITTED if entry.outcome is None else State.INTERRUPTED
            assert desk.state_of(proposal.psbt_id) is ended
        assert bool(shown.prompts) is entry.asks
        assert desk.submitted(proposal.psbt_id) == int(entry.outcome is None)


@pytest.mark.parametrize("proposal", UNGUARDED.values(), ids=str)
@PLAYED
def test_without_its_guard_the_device_would_be_asked(desk, proposal, monkeypatch):
    """That the tests of the daemon would notice."""
    switch_off(monkeypatch, proposal.off)
    try:
        view = desk.offer(proposal.snapshot())
        assert view.allowed
        # Two of them send the same amount to the same address of the vault.
        assert desk.approve(view, *view.to_acknowledge) is None
    finally:
        desk.clear(proposal.psbt_id)


@pytest.mark.parametrize("desk", [makes.TREZOR], indirect=True, ids=makes.named)
def test_s1_without_the_guard_the_person_still_sees_where_the_money_goes(desk, monkeypatch):
    """The next one: what is not proven to be change is shown as a payment, on the page and on the device."""
    proposal = next(p for p in proposals() if p.attack.number == "S1" and "stranger" in p.name)
    switch_off(monkeypatch, proposal.off)
    view, shown = desk.offer(proposal.snapshot()), desk.shown
    assert desk.approve(view) is None
    desk.clear(proposal.psbt_id)
    addresses = {payment.address for payment in view.money.payments}
    assert len(addresses) == 2
    assert all(address in shown.text for address in addresses)
