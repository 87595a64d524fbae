"""What every suite shares."""

import fcntl
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import settings

from tests.support.examples import IS_FULL, RUN, examples

MEMORY = Path("/dev/shm")
ENOUGH_BYTES = 4 * 1024**3


# What a shell starts in the background ignores Ctrl-C, and so would every program that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes is a matter of the machine, and of what else it does.
settings.register_profile("any-machine", deadline=None, max_examples=examples(50))
settings.load_profile("any-machine")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """In CI properties draw by the run, too; temporary folders in memory, where there is room and no option
    says otherwise.

    Thousands of small databases sync at each commit;
    side by side on one disk they wait for each other three times as long as they work.
    """
    # Hypothesis reads its option after this. With a seed it keeps no failing example: elsewhere it has none.
    if os.environ.get("CI") == "true" and config.getoption("hypothesis_seed") is None:
        config.option.hypothesis_seed = RUN
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK):
        return
    if shutil.disk_usage(MEMORY).free >= ENOUGH_BYTES:
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None


def pytest_report_header() -> str:
    tried = "everything" if IS_FULL else "every behaviour once; make test-full tries everything"
    return f"{tried}; cases and databases drawn by TEST_RUN={RUN}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Twice as many as cores: half of the time a test waits for a process, a lock or the disk."""
    return 2 * (os.cpu_count() or 1)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """In a fresh clone one worker reads the tests first, and the others what it has kept: rewriting the
    asserts takes twice as long as all else.
    """
    config = session.config
    is_whole = hasattr(config, "workerinput") and config.args == config.getini("testpaths")
    kept = f"test_package.{sys.implementation.cache_tag}-pytest-*.pyc"
    caches = Path(__file__).parent / "web" / "__pycache__"
    if not is_whole or sys.dont_write_bytecode or any(caches.glob(kept)):
        return (yield)
    with (Path(tempfile.gettempdir()) / f"tests-of-{os.getppid()}.lock").open("w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        if any(caches.glob(kept)):
            fcntl.flock(first, fcntl.LOCK_UN)
        return (yield)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is marked ``slow``, or begins with it: begun last, a test of a minute would be waited
    for alone. Where several work and steal from each other, each begins with its share of the slow modules.
    """
    slow: dict[Path, list[pytest.Item]] = {}
    others: list[pytest.Item] = []
    for item in items:
        is_slow = item.get_closest_marker("slow") is not None
        (slow.setdefault(item.path, []) if is_slow else others).append(item)
    if not IS_FULL:
        config.hook.pytest_deselected(items=[item for module in slow.values() for item in module])
        items[:] = others
        return
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    modules = sorted(slow.values(), key=len)
    total, done = len(items), 0
    items.clear()
    for who in range(workers):
        own = [item for module in modules[who::workers] for item in module]
        share = max(0, (total - len(items)) // (workers - who) - len(own))
        items += own + others[done : done + share]
        done += share


def pytest_collection_finish() -> None:
    """All that was read stays to the end: the garbage collector looked through it again and again,
    half a second each time.
    """
    gc.freeze()


@pytest.fixture(autouse=True)
def plain_log() -> None:
    """An error in the log without colours and everybody's local variables,
    which take up to a second to draw. The test before may have sent it elsewhere, as a command of
    ``custody`` does.
    """
    structlog.reset_defaults()
    plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, structlog.processors.add_log_level, plain]
    )


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
