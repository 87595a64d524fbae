"""L3, L8: what an app may call itself, and which origins there are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signerd.apps.names import LONGEST_NAME, clean_name, exact_origin, warning_of
from signerd.errors import InvalidRequest
from tests.support.command import is_tame


@pytest.mark.parametrize(
    ("given_name", "clean"),
    [
        ("Ledger of Ours", "Ledger of Ours"),
        ("  a \t b ", "a b"),
        ("Ｗallet", "Wallet"),
        ("財布", "財布"),
        ("7", "7"),
    ],
)
def test_a_name_has_one_spelling(given_name, clean):
    assert clean_name(given_name) == clean


@pytest.mark.parametrize(
    "name",
    ["", " ", "...", "x" * (LONGEST_NAME + 1), "a\u202eb", "a\u200bb", "a\x1b[2Jb", "a\x00b", "a\u3164b",
     "\u2800", "a\ufe0f", "\ue000a"],
    ids=ascii,
)  # fmt: skip
def test_l8_a_name_that_hides_something_or_is_none_is_refused(name):
    with pytest.raises(InvalidRequest):
        clean_name(name)


@pytest.mark.parametrize("name", ["command line", " Command\tLine", "page", "SIGNERD"])
def test_l8_no_app_takes_the_name_by_which_the_person_is_told_of_themselves(name):
    with pytest.raises(InvalidRequest):
        clean_name(name)


@given(st.text(max_size=60))
def test_l8_a_name_that_is_taken_is_tame_and_stays_as_it_is(text):
    try:
        name = clean_name(text)
    except InvalidRequest:
        return
    assert is_tame(name)
    assert 0 < len(name) <= LONGEST_NAME
    assert clean_name(name) == name


@pytest.mark.parametrize(
    ("typed", "exact"),
    [
        ("https://wallet.example", "https://wallet.example"),
        (" HTTPS://Wallet.Example/ ", "https://wallet.example"),
        ("https://wallet.example:443", "https://wallet.example"),
        ("https://wallet.example:80", "https://wallet.example:80"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("http://localhost:080", "http://localhost"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://[0:0::1]:8080", "http://[::1]:8080"),
        ("https://xn--e1afmkfd.example", "https://xn--e1afmkfd.example"),
        ("https://a_b.example", "https://a_b.example"),
    ],
)
def test_an_origin_is_spelled_as_a_browser_sends_it(typed, exact):
    assert exact_origin(typed) == exact
    assert exact_origin(exact) == exact


@pytest.mark.parametrize(
    "typed",
    [
        "", "null", "*", "wallet.example", "//wallet.example", "ftp://wallet.example", "file:///etc", "moz-extension://abc",
        "https://", "https://*.example", "https://.example", "https://example.", "https://a..b", "https://-a.example",
        "https://wallet.example/path", "https://wallet.example//", "https://wallet.example?x", "https://wallet.example#x",
        "https://user@wallet.example", "https://wallet.example:0", "https://wallet.example:65536", "https://wallet.example:",
        "https://wallet.example:x", "https://wallet.example\\@evil.example", "https://wallet .example", "https://wallet.example\n.evil",
        "https://пример.example", "https://wallet。example", "https://127.1", "https://0x7f.1",
        "https://2130706433", "https://010.0.0.1",
        "https://[::1", "https://[::ffff:127.0.0.1%eth0]",
        "https://" + "a" * 64 + ".example", "https://" + "a." * 130 + "example",
    ],
    ids=ascii,
)  # fmt: skip
def test_l3_what_is_no_exact_origin_is_refused_with_words(typed):
    with pytest.raises(InvalidRequest) as refused:
        exact_origin(typed)
    assert str(refused.value)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("origin", "word"),
    [
        (None, None),
        ("https://wallet.example", None),
        ("http://localhost:3000", "that port"),
        ("http://app.localhost", "that port"),
        ("http://127.0.0.1", "that port"),
        ("http://[::1]:8080", "that port"),
        ("http://wallet.example", "not encrypted"),
        ("http://127.0.0.1.example", "not encrypted"),
        ("http://localhost.example:80", "not encrypted"),
    ],
)
def test_the_person_is_warned_of_what_an_origin_does_not_prove(origin, word):
    told = warning_of(origin)
    assert told is None if word is None else word in (told or "")
