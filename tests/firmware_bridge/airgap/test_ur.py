"""UR 2: series of texts, and the published vectors for its numbers, mixtures and parts."""

import json
import zlib
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.airgap import cbor, fountain, ur
from firmware_bridge.airgap.fountain import Xoshiro256, fragments_of
from firmware_bridge.airgap.transfer import (
    MAX_BYTES,
    MAX_PARTS,
    MAX_TEXT,
    BadTransfer,
    Content,
    OtherTransfer,
    Transfer,
)

SERIES = list(islice(ur.split(bytes(range(200)), max_fragment=30), 40))
OTHER = list(islice(ur.split(bytes(range(1, 201)), max_fragment=30), 40))


def part_text(*numbers, data=b"", name="crypto-psbt", sequence=None, tail=b""):
    body = cbor.array(*(cbor.unsigned(number) for number in numbers), cbor.byte_string(data)) + tail
    return f"ur:{name}/{sequence or f'{numbers[0]}-{numbers[1]}'}/{ur.encode(body)}"


@given(st.binary(min_size=1, max_size=2_000), st.integers(10, 300), st.randoms(use_true_random=False))
def test_round_trip_with_losses_and_repetitions_in_any_order(data, max_fragment, chance):
    wanted = -(-(len(data) + 5) // max_fragment)
    shown = list(islice(ur.split(data, max_fragment=max_fragment), 8 * wanted + 40))
    kept = [text for text in shown if chance.random() < 0.7] * 2
    chance.shuffle(kept)
    assembler = ur.UrAssembler()
    for text in kept:
        received = assembler.add(text)
        assert received.seen <= received.wanted
    assert assembler.result == Transfer(Content.PSBT, data)


@pytest.mark.parametrize("text", [OTHER[2], part_text(1, 1, 4, 5, data=b"abcd"), next(ur.split(b"x"))])
def test_another_series_is_refused_and_nothing_is_lost(text):
    assembler = ur.UrAssembler()
    assembler.add(SERIES[0])
    with pytest.raises(OtherTransfer):
        assembler.add(text)
    for own in SERIES[1:7]:
        assembler.add(own)
    assert assembler.result.data == bytes(range(200))


def test_a_part_of_a_series_after_a_whole_text():
    assembler = ur.UrAssembler()
    whole = next(ur.split(b"small"))
    assembler.add(whole)
    with pytest.raises(OtherTransfer):
        assembler.add(SERIES[0])
    with pytest.raises(OtherTransfer):
        assembler.add(next(ur.split(b"other")))
    assert assembler.add(whole).complete
    assert assembler.result.data == b"small"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a UR"),
        ("ur:crypto-psbt", "not a UR"),
        ("ur:crypto-psbt/", "not a UR"),
        (" " + SERIES[0], "not a UR"),
        (SERIES[0] + "\n", "not a UR"),
        (SERIES[0].replace("-7/", "-7\0/"), "not a UR"),
        (SERIES[0].replace("1-7", "01-7"), "not a UR"),
        (SERIES[0].replace("K", "\u212a"), "not a UR"),
        ("ur:crypto-psbt/" + "ae" * MAX_TEXT, "not a UR"),
        (SERIES[0].replace("CRYPTO-PSBT", "CRYPTO-SEED"), "crypto-seed"),
        (SERIES[0][:-1] + ("D" if SERIES[0][-1] != "D" else "E"), "bytewords|checksum"),
        (SERIES[0].replace("1-7", "2-7"), "contradicts"),
        (SERIES[0].replace("1-7", "1-8"), "contradicts"),
        (part_text(0, 1, 4, 5, data=b"abcd", sequence="1-1"), "contradicts"),
        (part_text(1, 0, 4, 5, data=b"abcd", sequence="1-1"), "contradicts"),
        (part_text(1, 3, 4, 5, data=b"abcd"), "contradicts"),
        (part_text(1, 3, 40, 5, data=b"abcd"), "contradicts"),
        (part_text(1, 1, 0, 0, data=b""), "contradicts"),
        (part_text(1, MAX_PARTS + 1, 9_999, 5, data=b"abcdefgh"), "more than"),
        (part_text(1, 9_999, 2**32 - 1, 5, data=b"abcd"), "more than"),
        (part_text(1, 2, MAX_BYTES + 6, 5, data=b"abcd"), "more than"),
        (part_text(1, 2, 3, data=b"abcd"), "not a part"),
        (part_text(1, 1, 4, 5, data=b"abcd", tail=b"\0"), "malformed"),
        (f"ur:crypto-psbt/1-1/{ur.encode(bytes([0x9F]))}", "malformed"),
        (f"ur:crypto-psbt/1-1/{ur.encode(bytes.fromhex('8518010101014161'))}", "malformed"),
        (f"ur:crypto-psbt/1-1/{ur.encode(bytes.fromhex('851b0000000000000001'))}", "malformed"),
        (f"ur:crypto-psbt/{ur.encode(bytes.fromhex('5affffffff61'))}", "malformed"),
        (f"ur:crypto-psbt/{ur.encode(bytes.fromhex('416162'))}", "malformed"),
        (f"ur:crypto-psbt/{ur.encode(bytes.fromhex('6161'))}", "holds no file"),
    ],
)
def test_s23_texts_that_are_refused(text, words):
    assembler = ur.UrAssembler()
    with pytest.raises(BadTransfer, match=words) as caught:
        assembler.add(text)
    assert str(caught.value).isprintable()
    assert assembler.result is None


def test_s23_a_wrong_checksum_of_the_whole_starts_over():
    assembler = ur.UrAssembler()
    assembler.add(part_text(1, 2, 5, 77, data=b"Dab"))
    with pytest.raises(BadTransfer, match="start over"):
        assembler.add(part_text(2, 2, 5, 77, data=b"cd\0"))
    assert assembler.result is None
    for text in SERIES[:7]:
        assembler.add(text.replace("CRYPTO-PSBT", "PSBT"))
    assert assembler.result.data == bytes(range(200))


def in_two_parts(message):
    shape = fountain.FountainShape(2, len(message), zlib.crc32(message))
    size = shape.fragment_length
    pieces = (message[:size], message[size:].ljust(size, b"\0"))
    for number, piece in enumerate(pieces, start=1):
        part = fountain.Part(shape, number, piece)
        yield f"ur:crypto-psbt/{number}-2/{ur.encode(part.to_cbor())}"


@pytest.mark.parametrize("message", [b"\x43ab", b"\x81\x41a", b"\x41ab"])
def test_s23_a_message_that_is_no_byte_string_does_not_spoil_the_next_one(message):
    for texts in ([f"ur:crypto-psbt/{ur.encode(message)}"], list(in_two_parts(message))):
        assembler = ur.UrAssembler()
        *first, last = texts
        for text in first:
            assembler.add(text)
        with pytest.raises(BadTransfer, match=r"CBOR|holds no file"):
            assembler.add(last)
        assert assembler.result is None
        for text in SERIES[:7]:
            assembler.add(text)
        assert assembler.result.data == bytes(range(200))


def test_s23_memory_stays_with_the_message_whatever_is_shown():
    collector = fountain.Collector()
    shape = fountain.FountainShape(MAX_PARTS, 10 * MAX_PARTS, 1)
    # Never part 1, so that the message is never complete if mixtures of it are left out.
    shown = 0
    for number in range(2, 4 * MAX_PARTS):
        if 0 in fountain.fragments_of(number, MAX_PARTS, 1):
            continue
        collector.add(fountain.Part(shape, number, bytes(10)))
        shown += 1
    assert shown > 2 * MAX_PARTS
    assert len(collector._rows) <= MAX_PARTS - 1


def test_the_largest_message_and_beyond():
    texts = list(islice(ur.split(bytes(MAX_BYTES), max_fragment=1_700), 3))
    assert all(len(text) <= MAX_TEXT for text in texts)
    ur.UrAssembler().add(texts[0])
    with pytest.raises(ValueError, match="parts"):
        ur.split(bytes(MAX_BYTES), max_fragment=1_000)


VECTORS = json.loads((Path(__file__).parent / "vectors" / "ur.json").read_text())


def make_message(length):
    """The message of the vectors: bytes drawn from the generator itself."""
    random = Xoshiro256(b"Wolf")
    return bytes(random.below(256) for _ in range(length))


def test_the_fragments_of_each_part():
    checksum = zlib.crc32(make_message(1024))
    chosen = [sorted(fragments_of(number, 11, checksum)) for number in range(1, 51)]
    assert chosen == VECTORS["fragments"]


def test_the_parts():
    parts = list(islice(fountain.parts(make_message(256), 30), 20))
    assert [
        {
            "number": part.number,
            "fragments": part.shape.fragments,
            "length": part.shape.length,
            "checksum": part.shape.checksum,
            "data": part.data.hex(),
        }
        for part in parts
    ] == VECTORS["parts"]
    assert [fountain.Part.from_cbor(part.to_cbor()) for part in parts] == parts


def test_a_text_of_one_part():
    # The vectors draw the message's bytes after its length, so this is the same message.
    (text,) = set(islice(ur.split(make_message(50), Content.BINARY), 3))
    assert text == VECTORS["single"].upper()
    assembler = ur.UrAssembler()
    assert assembler.add(VECTORS["single"]).complete
    assert assembler.result == Transfer(Content.BINARY, make_message(50))


def test_the_texts_of_a_series():
    texts = list(islice(ur.split(make_message(256), Content.BINARY, max_fragment=30), 20))
    assert texts == [text.upper() for text in VECTORS["series"]]


def test_a_psbt():
    assembler = ur.UrAssembler()
    assembler.add(VECTORS["psbt_ur"])
    assert assembler.result == Transfer(Content.PSBT, bytes.fromhex(VECTORS["psbt_hex"]))
    (again,) = set(islice(ur.split(bytes.fromhex(VECTORS["psbt_hex"])), 2))
    assert again == VECTORS["psbt_ur"].replace("ur:psbt", "ur:crypto-psbt").upper()
