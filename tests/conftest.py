"""What every suite shares."""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
import structlog
from hypothesis import settings

from tests.support.examples import BRIEFLY, RUN, examples

HERE = Path(__file__).parent
# Set for a second interpreter, after a first one tried everything. Tried again is what the language and its
# library may do otherwise: what is stored, the processes of the device library, the keyring and the clients;
# and the demo, which runs every program as a whole.
TRIED_AGAIN = (
    "firmware_bridge",
    "custody/server/store",
    "custody/server/chain/test_embedded_chain.py",
    "signerd/journal",
    "signerd/account",
    "signerd/cli/test_progress.py",
    "end_to_end/test_demo.py",
)
# What devices say and what a file's bytes mean; and what waits for its clock.
NOT_AGAIN = (
    "firmware_bridge/advisories",
    "firmware_bridge/airgap",
    "firmware_bridge/test_endpoint_runs.py",
    "firmware_bridge/test_guide.py",
    "firmware_bridge/test_interleavings.py",
    "firmware_bridge/test_worker.py",
    "firmware_bridge/test_idle.py",
)
# A single test of each takes from twenty seconds to two minutes: begun last, it would be waited for alone.
# Several programs at once, and one alone, by turns.
LONG = (
    "end_to_end/test_demo.py",
    "custody/server/test_crash.py",
    "signerd/browser/test_every_page.py",
    "custody/server/service/network/test_hostile_explorer.py",
    "end_to_end/test_demo_that_fails.py",
    "custody/server/service/network/test_lives.py",
    "signerd/test_crashes.py",
    "signerd/hwi/test_parity.py",
    "web/test_coordinator.py",
    "custody/server/service/tokens/test_histories.py",
    "custody/server/service/people/test_staff_properties.py",
    "custody/server/test_money_properties.py",
    "signerd/daemon/test_proposals.py",
)
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
    return f"cases and databases drawn by TEST_RUN={RUN}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Twice as many as cores: half of the time a test waits for a process, a lock or the disk."""
    return 2 * (os.cpu_count() or 1)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """What is not tried again is not read either: that alone takes every worker half a minute."""
    if BRIEFLY not in os.environ:
        return None
    tried = _is_within(collection_path, TRIED_AGAIN) and not _is_within(collection_path, NOT_AGAIN)
    leads_there = any((HERE / path).is_relative_to(collection_path) for path in TRIED_AGAIN)
    return None if tried or leads_there else True


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The long ones first: where several work and steal from each other,
    at the beginning of everybody's share.
    """
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    long: dict[Path, list[pytest.Item]] = {HERE / path: [] for path in LONG}
    others: list[pytest.Item] = []
    for item in items:
        long.get(item.path, others).append(item)
    modules = [own for own in long.values() if own]
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


def _is_within(path: Path, places: Sequence[str]) -> bool:
    return any(path.is_relative_to(HERE / place) for place in places)


@pytest.fixture(autouse=True)
def plain_log() -> None:
    """An error in the log without colours and everybody's local variables,
    which take up to a second to draw.
    """
    # A command of ``custody`` sends the log of its process elsewhere.
    structlog.reset_defaults()
    plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, structlog.processors.add_log_level, plain]
    )


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
