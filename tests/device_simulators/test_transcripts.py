"""Transcripts are read whole or not at all: what cannot be meant is refused, with the situation's
name.
"""

import pytest

from tests.conformance.transcripts import Entry, Evidence, Screen, load, load_all


def test_a_screen_is_filled_with_the_values_of_its_situation():
    screen = Screen(("Send {amount} to", "{payee:.4}…"), no="Cancel", yes="Confirm")
    filled = screen.filled({"amount": "0.0005 TEST", "payee": "tb1qexample"})
    assert filled == Screen(("Send 0.0005 TEST to", "tb1q…"), no="Cancel", yes="Confirm")
    with pytest.raises(KeyError):
        screen.filled({"amount": "1"})


@pytest.mark.parametrize(
    "values",
    [
        {"outcome": "signed", "evidence": "seen"},
        {"outcome": "signed", "evidence": "guessed", "source": "a forum"},
        {"outcome": "signed", "evidence": "unknown", "source": "a forum"},
        {"outcome": "signed", "colour": "red"},
        {"evidence": "read", "source": "layout2.c"},
        {"outcome": "signed", "screens": [{"lines": ["Send?"], "maybe": "?"}]},
        {"outcome": "signed", "screens": [{"lines": [1]}]},
    ],
)
def test_a_malformed_entry_is_refused(values):
    with pytest.raises((ValueError, TypeError, KeyError)):
        Entry.parse(values)


def test_several_outcomes_may_be_possible():
    entry = Entry.parse({"outcome": ["Busy", "TimedOut"], "evidence": "read", "source": "desk.c"})
    assert entry.outcomes == ("Busy", "TimedOut")
    assert entry.evidence is Evidence.READ
    assert not entry.is_absent


def test_there_is_a_transcript_of_each_model_that_the_makers_firmware_was_run_of():
    assert [transcript.name for transcript in load_all()] == [
        "trezor-one-1.14.1",
        "coldcard-5.6.1",
        "ledger-app-2.4.6",
    ]
    assert load("coldcard-5.6.1").firmware == "5.6.1"
