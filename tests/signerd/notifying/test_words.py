"""What a desktop is told: counts in plain words, and what it is about only where the person asked
for that.
"""

import pytest

from signerd.core.states import State
from signerd.feed import WAITS, Line
from signerd.notifying.notifier import LONGEST_DETAIL, NOT_ON_SCREEN, Kind, kind_of, notice_of


def line(subject, kind, text="x", number=1):
    return Line(number, subject, kind, text)


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        (line("p-1", "ask"), Kind.PROPOSAL),
        (line("pairing", "ask"), Kind.PAIRING),
        (line("device-1", "question"), Kind.QUESTION),
        (line("p-1", "alarm"), Kind.ALARM),
        (line("p-1", "state", "waiting-for-device"), Kind.DEVICE),
        (line("p-1", "state", "refused"), Kind.REFUSED),
        (line("p-1", "state", "broadcast"), Kind.BROADCAST),
        (line("p-1", "state", "signed"), None),
        (line("p-1", "progress", "Look at your device."), None),
        (line("p-1", "info"), None),
        (line("p-1", "attention"), None),
        (line("d", "device"), None),
    ],
)
def test_what_is_told(told, kind):
    assert kind_of(told) is kind


@pytest.mark.parametrize("word", ["waiting-for-device", "refused", "broadcast"])
def test_the_states_that_are_told_are_states(word):
    assert State(word)


def test_a_burst_of_a_thousand_proposals_is_one_notice_that_counts_them():
    notice = notice_of([line(f"p-{n}", "ask") for n in range(1000)], details=False)
    assert (notice.title, notice.body) == ("1000 payments wait for your decision.", "")


def test_what_happens_twice_to_one_is_told_once():
    notice = notice_of([line("p-1", "ask"), line("p-1", "ask")], details=False)
    assert notice.title == "A payment waits for your decision."


def test_the_most_pressing_is_the_title():
    lines = [
        line("p-1", "ask"),
        line("p-2", "alarm", "Two payments spend one coin."),
        line("p-3", "state", "refused"),
    ]
    notice = notice_of(lines, details=False)
    assert notice.title == "signerd warns you."
    assert notice.body == "A payment waits for your decision. A payment was refused by a check."
    assert notice.urgent


def test_l6_of_many_the_most_pressing_is_named_first_where_the_end_is_cut():
    lines = [*(line(f"p-{n}", "ask") for n in range(100)), line("vault-9", "alarm")]
    notice = notice_of(lines, details=True)
    assert notice.body.startswith("100 payments wait for your decision. vault-9, p-0, p-1")
    assert notice.body.endswith("…")


def test_nothing_for_the_person_is_no_notice():
    assert notice_of([line("p-1", "progress"), line("p-1", "state", "signed")], details=False) is None


def test_l8_a_lock_screen_learns_neither_amounts_nor_names():
    words = "Pay 12.5 BTC to Evil"
    for kind in ("ask", "alarm", "question"):
        notice = notice_of([line("tb1-12.5-BTC", kind, words)], details=False)
        assert "12.5" not in notice.title + notice.body


def test_l8_details_carry_no_markup_and_no_control_characters():
    notice = notice_of([line("p-1", "alarm", "<b>Pay</b> &amp;\x1b[2J\u202eTSR " + "x" * 500)], details=True)
    assert not {"<", ">", "&", "\x1b", "\u202e"} & set(notice.body)
    assert len(notice.body) <= LONGEST_DETAIL
    assert "Pay" in notice.body


def test_s28_what_the_device_will_not_show_is_told_without_what_it_is():
    asked = line("p-1", "ask", f"{WAITS} Your Trezor One shows the first 31 of the 59 bytes.")
    assert notice_of([asked], details=False).body == NOT_ON_SCREEN
    assert "31 of the 59" in notice_of([asked], details=True).body
    assert notice_of([line("p-1", "ask", WAITS)], details=False).body == ""
