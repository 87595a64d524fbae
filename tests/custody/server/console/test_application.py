"""The long poll of an open page: a change of its own workspace, at once, for its members only."""

import asyncio

import httpx
import pytest

from custody.server.console import application
from custody.server.console.context import PageContext

pytestmark = pytest.mark.anyio


def _client(person, desk) -> httpx.AsyncClient:
    at = {"transport": httpx.ASGITransport(desk.world.platform.asgi), "base_url": "http://127.0.0.1"}
    return httpx.AsyncClient(**at, cookies=dict(person.http.cookies))


async def test_a_wait_ends_with_the_change_or_with_its_time(funded, browse, monkeypatch):
    person = await asyncio.to_thread(browse, "alice")
    path = f"/console/w/{funded.workspace_id}/changed"
    async with _client(person, funded) as client:
        known = (await client.get(path)).json()["revision"]
        waiting = asyncio.create_task(client.get(path, params={"after": known}))
        await asyncio.to_thread(funded.propose, 10_000)
        assert (await waiting).json() == {"revision": known + 1}
        monkeypatch.setattr(application, "WAIT_SECONDS", 0.01)
        answer = await client.get(path, params={"after": 10**6})
        assert (answer.status_code, answer.content) == (204, b"")
        assert (await client.get("/console/w/999/changed")).status_code == 404
        client.cookies.clear()
        assert (await client.get(path)).status_code == 401


def test_what_nobody_foresaw_is_a_page_with_what_to_quote(browse, monkeypatch):
    person = browse("alice")

    def crash(_page):
        raise RuntimeError("what nobody foresaw")

    monkeypatch.setattr(PageContext, "workspaces", property(crash))
    answer = person.http.get("/console/")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "text/html; charset=utf-8")
    assert "look before you do it again" in answer.text
    assert answer.headers["x-trace-id"] in answer.text
    assert "foresaw" not in answer.text
