"""The line that a device signs."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.schemas.common import MAX_INT64
from custody.schemas.keys import MAX_HOST_CHARACTERS, PURPOSE, ChallengeLine, offered_digest, signed_host

HOST = st.text("abz09.-:[]", min_size=1, max_size=MAX_HOST_CHARACTERS)
HEX = st.text("0123456789abcdef", min_size=32, max_size=32)


@given(HOST, st.sampled_from(["mainnet", "testnet"]), st.integers(1, MAX_INT64), HEX, HEX)
def test_is_read_as_it_was_written_and_fits_every_device(
    host: str, network, user_id: int, nonce: str, half: str
) -> None:
    line = ChallengeLine(host, network, user_id, nonce, half * 2)
    assert ChallengeLine.parse(str(line)) == line
    assert len(str(line)) <= 240
    assert str(line).isascii()
    assert str(line).isprintable()
    assert "  " not in str(line)


def test_no_other_text_is_read() -> None:
    """Of the longest line, with one letter more, less or another: a line, or no challenge."""
    host = ("custody." * 9)[: MAX_HOST_CHARACTERS - 1] + "e"
    line = str(ChallengeLine(host, "testnet", MAX_INT64, "0" * 32, "a" * 64))
    places = [(nth, nth + skipped) for nth in range(len(line) + 1) for skipped in (0, 1)]
    for text in {line[:begin] + new + line[end:] for begin, end in places for new in ("", *" \n0aA.оѕ٧")}:
        with suppress(ValueError):
            assert str(ChallengeLine.parse(text)) == text
            assert len(text) <= 240
            assert text == PURPOSE + text.removeprefix(PURPOSE).lower()
            assert text.isascii()
    assert str(ChallengeLine.parse(line)) == line


def test_the_digest_does_not_depend_on_the_order_but_on_all_else() -> None:
    pairs = [("m/48h/1h/0h/2h", "tpubA"), ("m/84h/1h/0h", "tpubB")]
    assert offered_digest(pairs) == offered_digest(reversed(pairs))
    assert offered_digest(pairs) != offered_digest(pairs[:1])
    assert offered_digest(pairs) != offered_digest([(pairs[0][0], "tpubB"), (pairs[1][0], "tpubA")])


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Custody.Example", "custody.example"),
        ("https://custody.example.:443/api", "custody.example"),
        ("https://custody.example:8443", "custody.example:8443"),
        ("https://user:secret@custody.example", "custody.example"),
        ("https://bücher.example", "xn--bcher-kva.example"),
        ("https://192.0.2.1", "192.0.2.1"),
        ("https://[2001:db8::1]:8443", "[2001:db8::1]:8443"),
        ("http://127.0.0.1:8700", "localhost"),
        ("http://[::1]:8700", "localhost"),
        ("https://localhost", "localhost"),
        (None, "localhost"),
    ],
)
def test_a_host_has_one_way_of_writing(url: str | None, host: str) -> None:
    assert signed_host(url) == host
    assert ChallengeLine.parse(str(ChallengeLine(host, "testnet", 7, "0" * 32, "a" * 64))).host == host


@pytest.mark.parametrize(
    "url", ["https://localhost.example", "https://127.0.0.1.example", "https://evil.example"]
)
def test_s36_no_other_host_reads_as_this_machine(url: str) -> None:
    assert signed_host(url) != "localhost"
