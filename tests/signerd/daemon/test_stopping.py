"""How it stops: with the error that must stop it, and with its folder let go."""

from pathlib import Path

import pytest

from signerd.errors import JournalUnwritable
from signerd.journal import StateFolder
from tests.support.daemons import daemon_at, until
from tests.support.desk import snapshot_of, spend
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform

pytestmark = pytest.mark.anyio


async def test_f_a_journal_that_cannot_be_written_stops_the_daemon(
    prepared: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    platform.proposals.clear()
    with pytest.raises(JournalUnwritable):  # noqa: PT012 - it is raised by the context's end
        async with daemon_at(prepared, platform, bridge) as daemon:
            pages = daemon.journal._db.execute("PRAGMA page_count").fetchone()[0]
            daemon.journal._db.execute(f"PRAGMA max_page_count = {pages}")
            platform.proposals["p-1"] = snapshot_of(spend(n_inputs=100))
            await until(daemon.task.done)
    assert bridge.asked == 0


async def test_a_held_folder_is_free_after_a_stop(
    state: Path, platform: FakePlatform, bridge: FakeBridge
) -> None:
    async with daemon_at(state, platform, bridge):
        pass
    StateFolder.hold(state).release()
