"""What is signed, through a real daemon and its socket: honest proposals, and what is shown after the person
looked.

At desks of their own: what was signed there counts against whatever pays the same again.
"""

import pytest

from tests.attacks.cases import proposals
from tests.attacks.desk import assert_signed
from tests.support.examples import drawn

HONEST = proposals(lambda p: p.honest and not p.is_special and p.later is None)
HONEST = drawn(HONEST, len(HONEST), of=__name__)
LATER = proposals(lambda p: p.later is not None)


@pytest.mark.parametrize("proposal", HONEST, ids=str)
def test_an_honest_one_is_shown_on_the_device_signed_and_submitted(desk, proposal):
    try:
        assert_signed(desk, proposal)
    finally:
        desk.clear(proposal.psbt_id)


@pytest.mark.parametrize("proposal", LATER, ids=str)
def test_s24_what_is_shown_after_the_person_looked(desk, proposal):
    shown = desk.shown
    view = desk.offer(proposal.snapshot())
    desk.show_again(proposal.looked_at_again)
    ended = desk.approve(view)
    desk.clear(proposal.psbt_id)
    assert (ended is None) is proposal.honest
    assert bool(shown.prompts) is proposal.honest
    assert desk.submitted(proposal.psbt_id) == int(proposal.honest)
