"""What every suite shares."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
import structlog
from hypothesis import settings

HERE = Path(__file__).parent
# Set for a second interpreter, after a first one tried everything. Tried again is what the language may do otherwise: the pure
# packages, the wire shapes, what is stored, the device library; and the demo, which runs every program as a whole.
BRIEFLY = "CUSTODY_TEST_BRIEFLY"
TRIED_AGAIN = (
    "multisig",
    "firmware_bridge",
    "custody/schemas",
    "custody/server/domain",
    "custody/server/store",
    "signerd/core",
    "signerd/journal",
    "signerd/account",
    "end_to_end/test_demo.py",
)
NOT_AGAIN = ("firmware_bridge/contract", "firmware_bridge/virtual")
MEMORY = Path("/dev/shm")
ENOUGH_BYTES = 4 * 1024**3


# How long an example takes is a matter of the machine, and of what else it does.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")


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


def pytest_xdist_auto_num_workers() -> int:
    """Twice as many as cores: half of the time a test waits for a process, a lock or the disk."""
    return 2 * (os.cpu_count() or 1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if BRIEFLY not in os.environ:
        return
    left_out = {item for item in items if not _is_tried_again(item.path)}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def _is_tried_again(path: Path) -> bool:
    def within(*folders: str) -> bool:
        return any(path.is_relative_to(HERE / folder) for folder in folders)

    return within(*TRIED_AGAIN) and not within(*NOT_AGAIN)


@pytest.fixture(autouse=True)
def plain_log() -> None:
    """An error in the log without colours and everybody's local variables, which take up to a second to draw."""
    plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, structlog.processors.add_log_level, plain]
    )


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
