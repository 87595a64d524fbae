"""The corpus at the export: no hostile proposal is given out for a device without a cable."""

import pytest

from signerd.core import events
from signerd.core.engine import decide
from signerd.core.events import ExportPsbt
from signerd.core.following import receive
from signerd.core.review import review
from signerd.errors import DecisionError
from tests.attacks.cases import Proposal, proposals

HONEST = proposals(lambda p: p.honest)
HOSTILE = proposals(lambda p: not p.honest and p.later is None and bool(p.refusals or p.held))


def given_out(proposal: Proposal) -> tuple[bytes, ...]:
    """What is exported for a person who approves without acknowledging a warning."""
    around = proposal.review_context()
    record = receive(proposal.snapshot(), around).record
    digest = review(record.snapshot, around).digest
    try:
        approved = decide(record, events.Approved(digest), around).record
        step = decide(approved, events.Exported(), around)
    except DecisionError:
        return ()
    return tuple(effect.psbt for effect in step.effects if isinstance(effect, ExportPsbt))


@pytest.mark.parametrize("proposal", HONEST, ids=str)
def test_an_honest_one_is_given_out(proposal):
    assert given_out(proposal) == (proposal.snapshot().psbt,)


@pytest.mark.parametrize("proposal", HOSTILE, ids=str)
def test_a_hostile_one_is_not(proposal):
    assert given_out(proposal) == ()
