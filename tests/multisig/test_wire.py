import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig.wire import Reader, compact_size


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
