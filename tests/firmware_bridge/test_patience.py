"""The time that one call has: the device's seconds and the person's, each counted once."""

import pytest

from firmware_bridge.lane import Patience
from firmware_bridge.model import Deadlines, waits_for_person


def ends_after(*steps, work=10.0, person=100.0):
    """When the call ends if nothing more is told after these: (seconds since the last one, step)."""
    now, patience = 1000.0, Patience(work, person, 1000.0)
    for seconds, step in steps:
        now += seconds
        patience.step(step, now)
    return patience.ends - 1000.0


@pytest.mark.parametrize(
    ("steps", "ends"),
    [
        ([], 10),
        # News of the work extends nothing.
        ([(4, "sending"), (4, "sending")], 10),
        # The person's time begins with the question, whole.
        ([(9, "confirm-transaction")], 109),
        # What was not used of the work's is there for the work after the yes.
        ([(9, "confirm-transaction"), (60, "signing")], 70),
        # Two questions share one person's time.
        ([(1, "confirm-output"), (60, "confirm-output"), (20, "confirm-transaction")], 101),
        # However often it goes to and fro, both together are the end.
        ([(0.5, "confirm"), (5, "signing")] * 20, 110),
    ],
)
def test_each_side_has_its_seconds_once(steps, ends):
    assert ends_after(*steps) == pytest.approx(ends)


def test_where_no_person_is_expected_a_question_is_not_waited_for():
    assert ends_after((1, "confirm"), (1, "enter-pin"), person=None) == pytest.approx(10)


@pytest.mark.parametrize(
    ("step", "person"),
    [
        ("confirm", True),
        ("confirm-transaction", True),
        ("confirm-enrolment", True),
        ("compare-pairing", True),
        ("enter-passphrase", True),
        ("identify", True),
        ("sending", False),
        ("signing", False),
        ("receiving", False),
        ("not-attested", False),
        ("confirmed", False),
        ("", False),
    ],
)
def test_a_step_says_who_is_waited_for(step, person):
    assert waits_for_person(step) is person


def test_the_work_on_a_large_transaction_is_waited_for():
    """A Coldcard took 200 s for 1.9 MB and 20 s for 391,827 bytes before it asked, in the makers' simulator."""
    deadlines = Deadlines()
    assert deadlines.signing(1, 1_900_000) > 2 * 200
    assert deadlines.signing(50, 391_827) > 2 * 20
