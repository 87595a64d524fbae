"""Uploads and downloads of the virtual Coldcard."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_simulators.coldcard.arguments import Staging
from device_simulators.coldcard.replies import CommandRefused
from device_simulators.coldcard.wire import MAX_UPLOAD


def upload(staging, data, block):
    for at in range(0, len(data), block):
        assert staging.receive(at, len(data), data[at : at + block]) == at


@given(st.binary(min_size=1, max_size=9000), st.sampled_from([256, 1024, 2048]))
def test_a_file_arrives_whole(data, block):
    staging = Staging()
    upload(staging, data, block)
    assert staging.checksum == sha256(data).digest()
    assert staging.take(len(data), staging.checksum) == data


@given(st.binary(min_size=1, max_size=9000), st.integers(min_value=1, max_value=4000))
def test_a_result_is_fetched_in_blocks(data, block):
    staging = Staging()
    length, digest = staging.offer(data)
    fetched = b""
    while len(fetched) < length:
        fetched += staging.send(len(fetched), min(block, length - len(fetched)), 1)
    assert (fetched, digest) == (data, sha256(data).digest())


@pytest.mark.parametrize(
    ("offset", "total", "size", "reason"),
    [
        (100, 300, 10, "alignment"),
        (256, 300, 10, "offset"),
        (0, 300, 301, "long"),
        (0, MAX_UPLOAD + 1, 10, "long"),
    ],
)
def test_s23_bad_blocks_are_refused(offset, total, size, reason):
    with pytest.raises(CommandRefused, match=f"^{reason}$"):
        Staging().receive(offset, total, bytes(size))


@pytest.mark.parametrize("length", [255, 257])
def test_another_file_than_the_uploaded_one_is_refused(length):
    staging = Staging()
    upload(staging, bytes(256), 256)
    with pytest.raises(CommandRefused, match="Checksum"):
        staging.take(length, sha256(bytes(256)).digest())
    with pytest.raises(CommandRefused, match="Checksum"):
        staging.take(256, bytes(32))


@pytest.mark.parametrize(
    ("arguments", "reason"), [((0, 1, 2), "bad fnum"), ((2**31, 1, 1), "bad offset"), ((0, 0, 1), "len")]
)
def test_bad_downloads_are_refused(arguments, reason):
    with pytest.raises(CommandRefused, match=reason):
        Staging().send(*arguments)
