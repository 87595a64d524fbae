"""A daemon over the scripted platform and device, for tests that change neither before it starts."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from signerd.daemon.service import Daemon
from tests.support.daemons import daemon_at
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform


@pytest.fixture
async def daemon(prepared: Path, platform: FakePlatform, bridge: FakeBridge) -> AsyncIterator[Daemon]:
    async with daemon_at(prepared, platform, bridge) as daemon:
        yield daemon
