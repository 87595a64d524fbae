import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig.wire import Reader, WireError, compact_size, with_length


@given(st.integers(0, 2**64 - 1))
def test_compact_size_round_trip(number):
    reader = Reader(compact_size(number))
    assert reader.compact_size() == number
    reader.finish()


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, "00"),
        (252, "fc"),
        (253, "fdfd00"),
        (65_535, "fdffff"),
        (65_536, "fe00000100"),
        (2**32, "ff0000000001000000"),
    ],
)
def test_compact_size_form(number, encoded):
    assert compact_size(number).hex() == encoded


@pytest.mark.parametrize(
    "encoded", ["fd0000", "fdfc00", "fe00000000", "feffff0000", "ff0000000000000000", "ffffffffff00000000"]
)
def test_a_longer_form_than_needed_is_refused(encoded):
    with pytest.raises(WireError, match="shortest"):
        Reader(bytes.fromhex(encoded)).compact_size()


@pytest.mark.parametrize("encoded", ["", "fd", "fd00", "fe0000", "ff00000000000000"])
def test_truncated_sizes_are_refused(encoded):
    with pytest.raises(WireError, match="too early"):
        Reader(bytes.fromhex(encoded)).compact_size()


def test_s23_an_announced_count_is_bounded_by_what_is_there():
    with pytest.raises(WireError, match="more items"):
        Reader(compact_size(2**62) + bytes(100)).count(1)
    with pytest.raises(WireError, match="too early"):
        Reader(compact_size(2**63) + bytes(100)).sized()


def test_reading_in_turn():
    reader = Reader(with_length(b"abc") + b"\x01\x00\x00\x00!")
    assert (reader.sized(), reader.uint(4), reader.peek(9), reader.remaining) == (b"abc", 1, b"!", 1)
    with pytest.raises(WireError, match="follow"):
        reader.finish()
    assert reader.take(1) == b"!"
    reader.finish()
