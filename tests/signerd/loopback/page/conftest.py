"""A real daemon on the fake platform and the fake device, and its page."""

from dataclasses import dataclass

import httpx
import pytest

from signerd.core.states import State
from signerd.daemon.service import Daemon
from tests.support.daemons import daemon_at, make_config, until_state
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform
from tests.support.paged import Markup, paged


@dataclass
class Desk:
    """A browser with a session, at a daemon with one honest proposal, "p-1", that waits."""

    daemon: Daemon
    platform: FakePlatform
    bridge: FakeBridge
    browser: httpx.AsyncClient

    async def page(self, path: str) -> Markup:
        answer = await self.browser.get(path)
        assert answer.status_code == 200, answer.text
        return Markup(answer.text)

    async def post(self, path: str, **fields: str | list[str]) -> httpx.Response:
        return await self.browser.post(path, data=fields, headers={"HX-Request": "true"})


@pytest.fixture
async def desk(prepared, platform, bridge):
    config = make_config(checks={"lowered": ["fee-share"]})
    async with daemon_at(prepared, platform, bridge, config=config) as daemon, paged(daemon) as browser:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        yield Desk(daemon, platform, bridge, browser)


@pytest.fixture
def daemon(desk):
    return desk.daemon


@pytest.fixture
def browser(desk):
    return desk.browser
