"""The corpus at the command line, over the daemon's socket: every refusal is named, and no approval is
accepted.
"""

import pytest

from signerd.cli.terminal import Exit
from signerd.shapes import ProposalView
from tests.attacks.cases import damage, entries, proposals, sound
from tests.conformance import makes
from tests.support.command import is_tame, signerd

PLAIN = proposals(lambda p: not p.is_special and p.later is None)
# Every third: other tests try each one through the daemon and its socket.
HOSTILE = tuple(p for n, p in enumerate(q for q in PLAIN if q.refusals and not q.honest) if n % 3 == 0)
SAID = tuple(p for p in PLAIN if p.honest and "description" in p.platform)
TREZOR_ONLY = pytest.mark.parametrize("desk", [makes.TREZOR], indirect=True, ids=makes.named)


@TREZOR_ONLY
@pytest.mark.parametrize("proposal", HOSTILE, ids=str)
def test_show_says_what_refuses_and_approve_takes_no_yes(desk, proposal):
    shown = desk.shown
    view = desk.offer(proposal.snapshot())
    try:
        text = signerd("show", proposal.psbt_id, state=desk.state)
        ended = signerd("approve", proposal.psbt_id, "--yes", state=desk.state)
    finally:
        desk.clear(proposal.psbt_id)
    refusing = [check for check in view.checks if check.outcome == "refuse"]
    assert proposal.refusals <= {check.name for check in refusing}
    assert all(check.sentence in text.out for check in refusing)
    assert ended.status == Exit.NOT_DECIDED
    assert all(name in ended.err for name in proposal.refusals)
    assert shown.prompts == []


@TREZOR_ONLY
@pytest.mark.parametrize("proposal", SAID, ids=str)
def test_s13_words_of_the_platform_stay_where_they_are_marked_as_its_own(desk, proposal):
    desk.offer(proposal.snapshot())
    text = signerd("show", proposal.psbt_id, state=desk.state).out
    view = ProposalView.model_validate(signerd("show", proposal.psbt_id, "--json", state=desk.state).json)
    desk.clear(proposal.psbt_id)
    assert is_tame(text)
    lines = text.splitlines()
    assert [line for line in lines if line.strip() == "Checks"] == ["Checks"]
    assert view.money is not None
    assert {payment.amount_sats for payment in view.money.payments} == set(proposal.platform["amounts"])


@TREZOR_ONLY
def test_s23_what_cannot_be_read_shows_no_figure(desk):
    entry = next(entry for entry in entries("damages") if entry.outcome)
    desk.offer(sound().snapshot(damage(entry)))
    text = signerd("show", sound().psbt_id, state=desk.state).out
    desk.clear(sound().psbt_id)
    assert "NOT KNOWN" in text
    assert "The PSBT cannot be read" in text
