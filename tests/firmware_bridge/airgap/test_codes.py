"""QR codes: their pictures, and one scanner for all formats."""

import contextlib
import struct
import time
from itertools import islice

import pytest

from firmware_bridge.airgap import (
    BadTransfer,
    CodeSeries,
    Content,
    OtherTransfer,
    PictureFormat,
    Scanner,
    Transfer,
    bbqr,
    draw,
    file_of,
    series_of,
    ur,
    version_of,
)
from firmware_bridge.airgap.codes import MAX_SCANNED
from firmware_bridge.airgap.transfer import MAX_TEXT
from tests.support.wallets import make_spend, make_vault

SERIES = bbqr.split(bytes(range(256)) * 5, Content.PSBT, encoding=bbqr.BbqrEncoding.HEX, max_characters=900)


def png_width(content):
    assert content.startswith(b"\x89PNG")
    return struct.unpack(">I", content[16:20])[0]


def test_a_series_keeps_its_size():
    version = version_of(SERIES)
    assert len({png_width(draw(text, PictureFormat.PNG, version=version)) for text in SERIES}) == 1
    assert version_of([SERIES[0]]) == version


VAULT = make_vault()
PSBT = make_spend(VAULT, n_inputs=1)
DATA = PSBT.to_bytes()
BBQR = bbqr.split(DATA, Content.PSBT, max_characters=300)
UR = list(islice(ur.split(DATA), 60))


@pytest.mark.parametrize(
    "texts",
    [BBQR, UR, [text.lower() for text in UR], [PSBT.to_base64()], [DATA.hex()], [DATA.hex().upper()]],
    ids=["bbqr", "ur", "ur lower", "base64", "hex", "HEX"],
)
def test_a_transfer(texts):
    scanner = Scanner()
    assert scanner.result is None
    for text in texts:
        received = scanner.add(text)
    assert received.complete
    assert scanner.result == Transfer(Content.PSBT, DATA)


@pytest.mark.parametrize("first", [BBQR, UR])
def test_other_formats_are_refused_once_one_has_begun(first):
    scanner = Scanner()
    scanner.add(first[0])
    for text in (BBQR[1] if first is UR else UR[1], PSBT.to_base64()):
        with pytest.raises(OtherTransfer, match="format"):
            scanner.add(text)
    for text in first[1:]:
        scanner.add(text)
    assert scanner.result.data == DATA


def test_a_text_that_is_refused_settles_no_format():
    scanner = Scanner()
    for text in (
        "B$HP0100x",
        "ur:crypto-psbt/1-1/xx",
        "https://example.com",
        "",
        "\0",
        "é",
        "A" * (MAX_TEXT + 1),
    ):
        with pytest.raises(BadTransfer):
            scanner.add(text)
    assert scanner.result is None
    assert scanner.add(BBQR[0]).seen == 1


FILE = make_spend(make_vault(), n_inputs=5).to_bytes()


@pytest.mark.parametrize("series", CodeSeries)
@pytest.mark.parametrize("room", [154, 758, 2_132])
def test_one_round_of_a_series_is_the_file_again(series, room):
    texts = series_of(FILE, Content.PSBT, series, room)
    assert max(map(len, texts)) <= room
    assert len(set(texts)) == len(texts)
    assert file_of("\n".join(texts).encode()) == FILE


@pytest.mark.parametrize(
    "lines",
    [
        SERIES[:-1],
        (*SERIES[:-1], "B$HP0"),
        (*SERIES[:1], *bbqr.split(b"other" * 100, Content.PSBT, max_characters=200)),
        ("UR:CRYPTO-PSBT/1-2/AAAA",),
        (SERIES[0], "\N{SNOWMAN}"),
    ],
    ids=["one missing", "cut off", "two series", "no bytewords", "not ascii"],
)
def test_a_series_that_is_not_whole_is_refused(lines):
    with pytest.raises(BadTransfer):
        file_of("\n".join(lines).encode())


def _seconds(lines) -> float:
    """Of the processor, for a series that is whole or not."""
    began = time.thread_time()
    with contextlib.suppress(BadTransfer):
        file_of("\n".join(lines).encode())
    return time.thread_time() - began


@pytest.mark.parametrize("kind", ["repeated", "repeated without end", "mixed"])
def test_s34_a_series_costs_no_more_than_its_longest_form(kind):
    data = bytes(1_295 * 1_000)
    longest = bbqr.split(data, Content.PSBT, encoding=bbqr.BbqrEncoding.BASE32, max_characters=1_608)
    lines = {
        "repeated": lambda: longest[:-1] * 2,
        # As many lines as the limit in bytes takes: forty seconds, when each cost as much as all before it.
        "repeated without end": lambda: [text[:16] for text in longest[:-1]] * 400,
        "mixed": lambda: list(islice(ur.split(data, max_fragment=1_005, first=5_000), 2_590)),
    }
    assert _seconds(lines[kind]()) < 10 * _seconds(longest)


def test_s23_a_series_has_a_limit():
    with pytest.raises(BadTransfer, match="too large"):
        file_of(b"B$HP0100" + b"A" * MAX_SCANNED)
