"""What every suite shares."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")
ENOUGH_BYTES = 4 * 1024**3


def pytest_configure() -> None:
    """Temporary folders in memory, where there is room and nobody said otherwise.

    Thousands of small databases sync at each commit; side by side on one disk they wait for each other three times as
    long as they work.
    """
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK):
        return
    if shutil.disk_usage(MEMORY).free >= ENOUGH_BYTES:
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
