"""BBQr against Coinkite's data, in any order, and hostile pictures (S23)."""

import hashlib
import json
import random
import tracemalloc
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.airgap.bbqr import BbqrAssembler, BbqrEncoding, split
from firmware_bridge.airgap.transfer import MAX_BYTES, MAX_TEXT, BadTransfer, Content, OtherTransfer, Transfer

VECTORS = json.loads((Path(__file__).parent / "vectors" / "bbqr.json").read_text())
ALPHANUMERIC = set("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:")
DATA = random.Random(7).randbytes(400)
SERIES = split(DATA, Content.PSBT, encoding=BbqrEncoding.HEX, max_characters=208)


def assemble(texts):
    assembler = BbqrAssembler()
    for text in texts:
        assembler.add(text)
    return assembler.result


def deflated(data):
    compressor = zlib.compressobj(level=9, wbits=-10)
    return compressor.compress(data) + compressor.flush()


def zlib_texts(compressed):
    """A series from a sender with its own compression settings."""
    return [
        text.replace("B$2", "B$Z", 1)
        for text in split(compressed, Content.PSBT, encoding=BbqrEncoding.BASE32)
    ]


def test_a_scan_by_coinkite():
    result = assemble(reversed(VECTORS["scan"]))
    assert result.content is Content.TEXT
    assert len(result.data) == VECTORS["scan_length"]
    assert hashlib.sha256(result.data).hexdigest() == VECTORS["scan_sha256"]


@pytest.mark.parametrize("file", VECTORS["files"], ids=lambda file: file["name"])
def test_files_of_coinkite(file):
    data = bytes.fromhex(file["hex"])
    texts = split(data, Content.PSBT)
    assert texts[0].startswith("B$ZP0100")
    assert (len(texts[0]) - 8) * 5 // 8 == pytest.approx(file["compressed"], abs=2)
    assert assemble(texts) == Transfer(Content.PSBT, data)


@given(
    st.binary(min_size=1, max_size=3_000),
    st.sampled_from(Content),
    st.sampled_from(BbqrEncoding),
    st.integers(60, 600),
    st.randoms(use_true_random=False),
)
def test_round_trip_shuffled_and_repeated(data, content, encoding, max_characters, chance):
    texts = split(data, content, encoding=encoding, max_characters=max_characters)
    assert all(len(text) <= max_characters and set(text) <= ALPHANUMERIC for text in texts)
    assert len({len(text) for text in texts[:-1]} | {len(texts[0])}) == 1
    assert len(texts[-1]) <= len(texts[0])
    shown = [*texts, *texts]
    chance.shuffle(shown)
    assert assemble(shown) == Transfer(content, data)


def test_another_series_is_refused_and_nothing_is_lost():
    other = split(DATA[::-1], Content.PSBT, encoding=BbqrEncoding.HEX, max_characters=208)
    assembler = BbqrAssembler()
    assembler.add(SERIES[0])
    wrong = [other[0], SERIES[1].replace("P04", "P05"), "B$2P0400AA", SERIES[1][:-2]]
    wrong += [SERIES[1].replace("P04", "T04"), SERIES[3] + SERIES[1][8:]]
    for text in wrong:
        with pytest.raises(OtherTransfer):
            assembler.add(text)
    for text in SERIES[1:]:
        assembler.add(text)
    assert assembler.result.data == DATA


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not part"),
        ("B$", "not part"),
        ("B$HP0100", "not part"),
        ("B$HP0100AB\n", "not part"),
        ("B$HP0100\x1b[2J", "not part"),
        ("B$HP0100ab", "not part"),
        ("b$HP0100AB", "not part"),
        ("B$HP0100" + "A" * MAX_TEXT, "not part"),
        ("B$XP0100AB", "kind"),
        ("B$HX0100AB", "kind"),
        ("B$HC0100AB", "kind"),
        ("B$HP0000AB", "part 1 of 0"),
        ("B$HP0101AB", "part 2 of 1"),
        ("B$HPZZZZAB", "part 1296 of 1295"),
        ("B$HP0100ABC", "whole bytes"),
        ("B$HP0100ABCG", "whole bytes"),
        ("B$2P0100A", "whole bytes"),
        ("B$2P0100A1", "whole bytes"),
        ("B$2P0100AB", "whole bytes"),
        ("B$HPZZ00" + "AB" * 2_140, "more than"),
    ],
)
def test_s23_texts_that_are_refused(text, words):
    assembler = BbqrAssembler()
    with pytest.raises(BadTransfer, match=words) as caught:
        assembler.add(text)
    assert str(caught.value).isprintable()
    assert (caught.value.detail or "").isprintable()
    assert assembler.result is None


def test_s23_a_bomb_is_not_blown_up():
    texts = zlib_texts(deflated(bytes(32 * MAX_BYTES)))
    tracemalloc.start()
    try:
        with pytest.raises(BadTransfer, match="more than"):
            assemble(texts)
        assert tracemalloc.get_traced_memory()[1] < 8 * MAX_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "compressed",
    [deflated(DATA)[:-3], deflated(DATA) + b"more", bytes(50), b"\xff" * 50],
    ids=["cut", "trailing", "zeros", "noise"],
)
def test_s23_what_cannot_be_decompressed(compressed):
    with pytest.raises(BadTransfer, match=r"decompressed|cut off"):
        assemble(zlib_texts(compressed))
