"""The description of a device's screens matches its transcript: each figure on its screen, in order."""

import re

import pytest

from device_simulators.trezor import screens as trezor
from firmware_bridge import Family
from firmware_bridge.makers import MAKERS
from firmware_bridge.screens import ShownOutput, ShownPayment, payment_screens
from multisig import Network
from tests.conformance.transcripts import load_all

# As tests/conformance/payments.py makes them; change is the last.
PAYEE, SECOND, DATA = "{payee}", "{payee2}", "{data}"
FEE = 1_000


def payment(*outputs: ShownOutput, coin: int = 100_000, **lock) -> ShownPayment:
    back = coin - FEE - sum(output.sats for output in outputs)
    return ShownPayment(outputs, (ShownOutput(back, "{change}"),), FEE, **lock)


SITUATIONS = {
    "sign-1": payment(ShownOutput(50_000, PAYEE)),
    "sign-two-payments": payment(ShownOutput(50_000, PAYEE), ShownOutput(20_000, SECOND)),
    "sign-self": payment(),
    "op-return-20": payment(ShownOutput(50_000, PAYEE), ShownOutput(0, data=DATA)),
    "lock-time": payment(ShownOutput(50_000, PAYEE), locktime=500),
    "lock-time-final": payment(ShownOutput(50_000, PAYEE), locktime=500, locktime_holds=False),
}
# An amount with its unit, what stands for an address or for data, or a lock time.
FIGURES = re.compile(
    r"\d[\d.]* (?:BTC|TEST|XTN)(?: \(self-transfer\))?|(?:0x)?\{\w+\}"
    r"|(?<=height: )\d+|(?<=height of )\d+|Locktime (?:is set but will have no effect\.|has no effect!)"
)


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("transcript", load_all(), ids=lambda one: one.name)
def test_each_figure_stands_on_the_screen_that_the_transcript_has_it_on(transcript, situation):
    entry = transcript.entries[situation]
    shown = [" ".join(screen.lines) for screen in entry.screens if not screen.notice]
    told = payment_screens(transcript.family, Network.REGTEST, SITUATIONS[situation])
    expected = [
        [figure for figure in FIGURES.findall(words.replace("{DATA}", DATA)) if figure != "{name}"]
        for words in shown
    ]
    assert [[figure.value for figure in screen] for screen in told] == expected


@pytest.mark.parametrize("transcript", load_all(), ids=lambda one: one.name)
def test_what_is_shown_of_a_message_is_what_the_transcript_has_in_its_order(transcript):
    shown = " ".join(line for screen in transcript.entries["message"].screens for line in screen.lines)
    order = {"path": r"[Pp]ath|\{account\}", "address": r"\bmj\w{30,}", "text": r"\{text\}"}
    found = {word: match.start() for word, form in order.items() if (match := re.search(form, shown))}
    style = MAKERS[transcript.family].style
    assert [word for part in style.message for word in order if word in part.split()] == sorted(
        found, key=found.get
    )


def test_of_a_maker_whose_screens_were_not_compared_nothing_is_told():
    assert payment_screens(Family.JADE, Network.REGTEST, SITUATIONS["sign-1"]) == ()


def test_mainnet_has_a_unit_of_its_own():
    (figure, _to), _total = payment_screens(Family.TREZOR, Network.MAINNET, SITUATIONS["sign-1"])
    assert figure.value == "0.0005 BTC"


@pytest.mark.parametrize(
    ("sats", "whole"),
    [
        (99_999_999_999, "999.99999999 TEST"),
        (10**15 + 1_000, "10,000,000.00001 TEST"),
        (10**15, "10,000,000 TEST"),
    ],
)
def test_a_trezor_groups_thousands_and_cuts_what_is_too_long_for_its_line(sats, whole):
    (figure, _to), _total = payment_screens(
        Family.TREZOR, Network.TESTNET4, payment(ShownOutput(sats, PAYEE))
    )
    assert figure.value == whole
    _title, line, _address = trezor.payment(sats, PAYEE, Network.TESTNET4, None).lines
    assert f"{whole} to".startswith(line)
    assert line == (f"{whole} to" if len(whole) < 20 else "10,000,000.00001 TES")
