"""A renewed session is stored, also where the first try fails."""

import asyncio
import errno
import json
import os

import pytest

from custody.client import Session
from custody.common import session_store
from signerd.account.secrets import SignerdFileStore
from signerd.account.session import Account
from tests.support.daemons import make_config

pytestmark = pytest.mark.anyio
RENEWED = Session("sid", refresh_token="the renewed one")


def renewed(account: Account) -> Account:
    """As the client does once the platform gave a new refresh token."""
    account.client.core.session = RENEWED
    account._changed(RENEWED)
    return account


async def test_on_a_full_disk_the_daemon_goes_on_and_stores_the_session_later(tmp_path, monkeypatch):
    monkeypatch.setattr(session_store, "ARGON2_MEMORY_KIB", 64)
    monkeypatch.setattr(session_store, "ARGON2_PASSES", 1)
    store, told, fsync = (
        SignerdFileStore(tmp_path / "secrets.json", lambda: "phrase"),
        asyncio.Event(),
        os.fsync,
    )

    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def sleep(_seconds: float) -> None:
        assert account.trouble is not None
        assert "No space left" in account.trouble
        monkeypatch.setattr(os, "fsync", fsync)
        told.set()

    monkeypatch.setattr(os, "fsync", full)
    account = renewed(Account(make_config(), store, sleep=sleep))
    keeping = asyncio.create_task(account.keep())
    waiting = asyncio.create_task(told.wait())
    await asyncio.wait({keeping, waiting}, timeout=60, return_when=asyncio.FIRST_COMPLETED)
    assert not keeping.done()
    async with asyncio.timeout(60):
        while not store.path.exists():
            await asyncio.to_thread(lambda: None)
    keeping.cancel()
    await account.close()
    assert json.loads(store.load() or "")["refresh_token"] == "the renewed one"
