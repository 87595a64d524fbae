"""QR codes: their pictures, and one scanner for all formats."""

import contextlib
import random
import struct
from dataclasses import dataclass
from functools import partial
from itertools import islice

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
from firmware_bridge.airgap.codes import MAX_LINES, MAX_SCANNED
from firmware_bridge.airgap.transfer import MAX_TEXT
from tests.support.counted import counted
from tests.support.examples import examples
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


@dataclass(frozen=True)
class Shown:
    """A series of few bytes a text: a BBQr by its letter, or a fountain from part ``first`` on. ``says``: the
    letter that stands for a zero in its headers, so that it has other numbers of parts.
    """

    kind: str
    parts: int
    salt: int
    is_whole: bool
    first: int
    says: str

    def texts(self) -> list[str]:
        data = random.Random(self.salt).randbytes(5 * self.parts)
        if self.kind == "UR":
            return list(islice(ur.split(data, max_fragment=10, first=self.first), self.parts // 2 + 10))
        encoding = bbqr.BbqrEncoding(self.kind)
        texts = bbqr.split(data, Content.PSBT, encoding=encoding, max_characters=16)
        return [text[:6].replace("0", self.says) + text[6:] for text in texts[: self.is_whole - 1 or None]]


SHOWN = st.builds(
    Shown,
    kind=st.sampled_from(["2", "UR", "H", "Z"]),
    parts=st.sampled_from([200, 120, 3]),
    salt=st.integers(0, 9),
    is_whole=st.booleans(),
    first=st.sampled_from([1, 5_000]),
    says=st.sampled_from("000Z1"),
)


def scanned(texts: list[str]) -> None:
    """As the page's camera does it, which goes on after what was refused."""
    scanner = Scanner()
    for text in texts:
        with contextlib.suppress(BadTransfer):
            scanner.add(text)


def read(texts: list[str]) -> None:
    with contextlib.suppress(BadTransfer):
        file_of("\n".join(texts).encode())


@settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
@given(
    series=st.lists(SHOWN, min_size=1, max_size=3),
    times=st.sampled_from([100, 3, 1]),
    chance=st.none() | st.randoms(use_true_random=False),
)
def test_s34_a_text_costs_as_much_however_many_came_before_it(series, times, chance) -> None:
    """A fountain's equations are solved once besides, by the square of its parts."""
    texts = [text for one in series for text in one.texts()]
    if chance is not None:
        chance.shuffle(texts)
    solved = sum(text.startswith("UR") for text in texts) ** 2
    for how, lines in ((scanned, texts * min(times, 3)), (read, texts * times)):
        _, calls = counted(partial(how, lines))
        most = 3_000 + sum(400 if text.startswith("UR") else 80 for text in lines[:MAX_LINES]) + solved
        assert calls < most, (how, len(lines), calls, most)


def test_s23_a_series_has_a_limit():
    with pytest.raises(BadTransfer, match="too large"):
        file_of(b"B$HP0100" + b"A" * MAX_SCANNED)
