"""UR 2 against the published vectors: numbers, mixtures, parts and texts."""

import json
import zlib
from itertools import islice
from pathlib import Path

import pytest

from firmware_bridge.airgap import fountain, ur
from firmware_bridge.airgap.fountain import Sampler, Xoshiro256, draw_degree, fragments_of, shuffled
from firmware_bridge.airgap.transfer import Content, Transfer, Unreadable

VECTORS = json.loads((Path(__file__).parent / "vectors" / "ur.json").read_text())
SEED_CBOR = bytes.fromhex("d99d6ca20150c7098580125e2ab0981253468b2dbc5202c11947da")


def make_message(length):
    """The message of the vectors: bytes drawn from the generator itself."""
    random = Xoshiro256(b"Wolf")
    return bytes(random.below(256) for _ in range(length))


def test_the_checksum():
    assert zlib.crc32(b"Wolf") == 0x598C84DC


def test_the_generator():
    random = Xoshiro256(b"Wolf")
    assert [random.next() % 100 for _ in range(100)] == VECTORS["rng_wolf"]
    random = Xoshiro256(b"Wolf")
    assert [random.below(10) + 1 for _ in range(100)] == VECTORS["rng_wolf_range"]


def test_the_sampler():
    sampler, random = Sampler([1, 2, 4, 8]), Xoshiro256(b"Wolf")
    assert [sampler.draw(random) for _ in range(500)] == VECTORS["sampler"]


def test_the_degrees():
    random = Xoshiro256(b"Wolf")
    assert [draw_degree(11, random) for _ in range(1000)] == VECTORS["degrees"]


def test_the_weights_are_added_one_by_one():
    # `sum` of 3.12 gives another last bit for these, and other fragments would be drawn than the sender drew.
    weights = [1 / degree for degree in range(1, 12)]
    total = 0.0
    for weight in weights:
        total += weight
    # A last weight that is neither poor nor rich before all others keeps the share it was given.
    assert Sampler(weights)._share[-1] == weights[-1] * len(weights) / total


def test_the_shuffle():
    drawn = [shuffled(range(1, 11), Xoshiro256(b"Wolf"), count) for count in range(1, 11)]
    order = [6, 4, 9, 3, 10, 5, 7, 8, 1, 2]
    assert drawn == [order[:count] for count in range(1, 11)]


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


def test_the_parts_in_cbor():
    parts = islice(fountain.parts(make_message(256), 30), 20)
    assert [part.to_cbor().hex() for part in parts] == VECTORS["parts_cbor"]


def test_bytewords():
    text = "tantjzoeadgdstaslplabghydrpfmkbggufgludprfgmaosecffltnsoaawkbd"
    assert ur.encode(SEED_CBOR) == text
    assert ur.decode(text) == SEED_CBOR


@pytest.mark.parametrize("text", ["", "a", "tant", "tantjzoeadgdstas", "xxtantjz"])
def test_s23_no_bytewords(text):
    with pytest.raises(Unreadable):
        ur.decode(text)


def test_a_text_of_one_part():
    # The vectors draw the message's bytes after its length, so this is the same message.
    (text,) = set(islice(ur.split(make_message(50), Content.BINARY), 3))
    assert text == VECTORS["single"].upper()
    assembler = ur.Assembler()
    assert assembler.add(VECTORS["single"]).complete
    assert assembler.result == Transfer(Content.BINARY, make_message(50))


def test_the_texts_of_a_series():
    texts = list(islice(ur.split(make_message(256), Content.BINARY, max_fragment=30), 20))
    assert texts == [text.upper() for text in VECTORS["series"]]


def test_a_series_that_starts_late():
    message = make_message(32_767)
    assembler = ur.Assembler()
    for shown, text in enumerate(ur.split(message, Content.BINARY, max_fragment=1000, first=100)):
        if assembler.add(text).complete:
            break
        assert shown < 100
    assert assembler.result == Transfer(Content.BINARY, message)


def test_a_psbt():
    assembler = ur.Assembler()
    assembler.add(VECTORS["psbt_ur"])
    assert assembler.result == Transfer(Content.PSBT, bytes.fromhex(VECTORS["psbt_hex"]))
    (again,) = set(islice(ur.split(bytes.fromhex(VECTORS["psbt_hex"])), 2))
    assert again == VECTORS["psbt_ur"].replace("ur:psbt", "ur:crypto-psbt").upper()


def test_a_part_whose_checksum_begins_with_zeros():
    received = ur.Assembler().add(VECTORS["short_checksum"])
    assert (received.seen, received.wanted) == (1, 29)
