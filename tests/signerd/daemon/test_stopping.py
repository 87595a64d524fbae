"""How it stops: with the error that must stop it, and with its folder let go."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from signerd.core.states import State
from signerd.daemon import service
from signerd.errors import JournalCorrupted
from signerd.journal.storage import JOURNAL
from tests.support.daemons import approve, daemon_at, until, until_state
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform

pytestmark = pytest.mark.anyio


async def test_s34_damage_that_a_start_does_not_look_for_stops_the_daemon_before_a_device_is_asked(
    prepared: Path, platform: FakePlatform, bridge: FakeBridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
    # What another program wrote: of the chain a start looks at what came since the last check only.
    with closing(sqlite3.connect(prepared / JOURNAL)) as journal, journal:
        journal.execute("DROP TRIGGER audit_stays")
        journal.execute("UPDATE audit SET subject = 'another' WHERE sequence = 1")
    looks, real = threading.Event(), service.check_whole

    def late(*given: object) -> str | None:
        assert looks.wait(60)
        return real(*given)

    monkeypatch.setattr(service, "check_whole", late)
    # The first start checked everything, for there was no journal before; this one need not.
    with pytest.raises(JournalCorrupted, match="entry 1 was changed"):  # noqa: PT012 - by the context's end
        async with daemon_at(prepared, platform, bridge) as daemon:
            await until_state(daemon, "p-1", State.WAITING_PERSON)
            await approve(daemon, "p-1")
            await daemon.status()
            assert daemon.journal.record("p-1").state is State.WAITING_DEVICE
            looks.set()
            await until(daemon.task.done)
    assert bridge.asked == 0
    with pytest.raises(JournalCorrupted, match="set aside"):
        async with daemon_at(prepared, platform, bridge):
            pass
