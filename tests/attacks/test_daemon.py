"""The corpus through a real daemon and its socket, with virtual devices behind the real bridge."""

from dataclasses import replace

import pytest

from signerd.errors import IllegalEvent, NeedsAcknowledgement, RefusedByChecks
from tests.attacks.cases import damage, proposals, sound
from tests.attacks.desk import assert_signed, at_desks, desk_with, in_turn, named, set_neighbours
from tests.attacks.recipes.absurd import DAMAGES
from tests.conformance import makes
from tests.support.examples import drawn

PLAIN = proposals(lambda p: not p.is_special and p.later is None)
# A fast run draws some: each is refused by its check in `test_inspection.py`.
HOSTILE = tuple(p for p in PLAIN if not p.honest)
HOSTILE = tuple(drawn(HOSTILE, len(HOSTILE), of="hostile at a device"))
# A change that was taken back is tried where it is kept, in `tests/signerd/journal`; a vault that was pinned
# with a key that is not the device's, the journal does not even take.
# What a screen shows is tried in `test_token_screens.py`, with the devices that have it.
SPECIAL = proposals(lambda p: p.is_special and not {"changes", "own", "screen"} & p.around.keys())
UNHEARD = tuple(p for p in SPECIAL if "workspace_network" in p.says)
APART = tuple(p for p in SPECIAL if p not in UNHEARD)
APART = tuple(drawn(APART, len(APART), of="apart"))
# A megabyte a round is the platform's cost too; the parser has been shown all of them.
BROKEN = tuple(d for d in DAMAGES if d.outcome and len(damage(d)) < 1 << 20)
REFUSED = {RefusedByChecks.code, IllegalEvent.code}


def refused_by(view) -> set[str]:
    return {check.name for check in view.checks if check.outcome == "refuse"} - {"transaction"}


@at_desks("proposal", HOSTILE)
def test_a_hostile_one_never_reaches_the_screen_of_the_device(desk, proposal):
    try:
        assert_stopped(desk, proposal)
    finally:
        desk.clear(proposal.psbt_id)


def assert_stopped(desk, proposal) -> None:
    """Refused, or held until the person has named what is wrong; and the device has shown nothing."""
    shown = desk.shown
    view = desk.offer(proposal.snapshot())
    assert desk.approve(view) in (REFUSED if proposal.refusals else {NeedsAcknowledgement.code})
    assert proposal.refusals <= refused_by(view)
    assert view.allowed is not bool(proposal.refusals)
    assert set(view.to_acknowledge) - desk.cut_off(view) == set(proposal.held)
    assert shown.prompts == []
    assert desk.submitted(proposal.psbt_id) == 0


@at_desks("entry", BROKEN)
def test_s23_what_cannot_be_read_is_refused_and_the_daemon_goes_on(desk, entry):
    shown = desk.shown
    odd = sound().snapshot(damage(entry))
    psbt_id = f"damage-{BROKEN.index(entry)}"
    view = desk.offer(replace(odd, psbt_id=psbt_id))
    ended = desk.approve(view)
    desk.clear(psbt_id)
    assert refused_by(view) == {"psbt-readable"}
    assert view.money is None
    assert ended in REFUSED
    assert shown.prompts == []


@pytest.mark.parametrize(("proposal", "make"), in_turn(APART), ids=named)
def test_on_a_machine_that_knows_something_else(proposal, make, folder):
    """Other proposals, or a vault that is shown otherwise, is not pinned, or was pinned elsewhere."""
    with desk_with(make, folder, proposal.around) as desk:
        set_neighbours(desk, proposal)
        if proposal.refusals or proposal.held:
            assert_stopped(desk, proposal)
        else:
            assert_signed(desk, proposal)


@pytest.mark.parametrize("proposal", UNHEARD, ids=str)
def test_s14_a_workspace_of_another_network_is_not_even_heard(proposal, folder):
    with desk_with(makes.TREZOR, folder, workspace_network="mainnet") as desk:
        desk.platform.proposals[proposal.psbt_id] = proposal.snapshot()
        desk.served.until(lambda: desk.served.service.follower.reachable)
        assert desk.served.service.follower.workspaces == ()
        assert desk.served.on_loop(desk.served.service.journal.records) == ()
