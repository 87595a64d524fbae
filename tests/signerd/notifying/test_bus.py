"""A real private bus, a small desktop on it, and the child that tells it; and what there may be instead of a
desktop.
"""

import asyncio
import contextlib
import shutil
import socket

import pytest
from dbus_fast.aio import MessageBus
from dbus_fast.service import ServiceInterface, dbus_method

from signerd.notifying import child
from signerd.notifying.notifier import Notice, session_bus, show

pytestmark = pytest.mark.anyio
BUS = pytest.mark.skipif(
    shutil.which("dbus-daemon") is None, reason="dbus-daemon is not installed (Debian: dbus)"
)
NOTICE = Notice("A payment waits for your decision.", "", urgent=False)
CONFIGURATION = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={path}</listen>
<policy context="default"><allow send_destination="*"/>
<allow receive_sender="*"/><allow own="*"/></policy></busconfig>
"""


@pytest.fixture
def anyio_backend():
    return "asyncio"


def desktop(*, mute=False):
    class Desktop(ServiceInterface):
        def __init__(self):
            super().__init__(child.NAME)
            self.told = []

        @dbus_method()
        async def Notify(  # noqa: N802 - the specification's name
            self,
            app: "s",  # noqa: F821
            replaces: "u",  # noqa: F821
            icon: "s",  # noqa: F821
            title: "s",  # noqa: F821
            body: "s",  # noqa: F821
            actions: "as",  # noqa: F722
            hints: "a{sv}",  # noqa: F722
            lasts: "i",  # noqa: F821
        ) -> "u":  # noqa: F821
            self.told.append((app, title, body, hints["urgency"].value))
            if mute:
                await asyncio.sleep(60)
            return 1

    return Desktop()


@pytest.fixture
async def bus(tmp_path, monkeypatch):
    path = tmp_path / "bus"
    (tmp_path / "bus.conf").write_text(CONFIGURATION.format(path=path))
    daemon = await asyncio.create_subprocess_exec(
        "dbus-daemon",
        f"--config-file={tmp_path / 'bus.conf'}",
        "--nofork",
        "--print-address=1",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    address = (await asyncio.wait_for(daemon.stdout.readline(), 20)).decode().strip()
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
    yield address
    daemon.terminate()
    await daemon.communicate()


@contextlib.asynccontextmanager
async def listening(address, service):
    connection = await MessageBus(bus_address=address).connect()
    connection.export(child.PATH, service)
    await connection.request_name(child.NAME)
    yield service
    connection.disconnect()


@BUS
@pytest.mark.parametrize(("urgent", "urgency"), [(False, child.NORMAL), (True, child.CRITICAL)])
async def test_a_desktop_is_told(bus, urgent, urgency):
    notice = Notice("Title <b>", "Body “ä”", urgent)
    async with listening(bus, desktop()) as service:
        assert await show(notice, seconds=60)
    assert service.told == [("signerd", "Title <b>", "Body “ä”", urgency)]


@BUS
async def test_a_bus_without_a_desktop_is_silent(bus):
    assert not await show(NOTICE, seconds=60)


@BUS
async def test_a_desktop_that_does_not_answer_is_given_up(bus):
    async with listening(bus, desktop(mute=True)):
        assert not await show(NOTICE, seconds=3)


async def test_an_address_where_nobody_listens(tmp_path, monkeypatch):
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={tmp_path / 'none'}")
    assert not await show(NOTICE, seconds=60)


async def test_without_a_session_no_process_is_started(monkeypatch):
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(asyncio, "create_subprocess_exec", None)
    assert not await show(NOTICE)


def test_where_the_bus_is(tmp_path):
    assert session_bus({}) is None
    assert session_bus({"XDG_RUNTIME_DIR": str(tmp_path)}) is None
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "bus"))
    assert session_bus({"XDG_RUNTIME_DIR": str(tmp_path)}) == f"unix:path={tmp_path / 'bus'}"
    assert (
        session_bus({"DBUS_SESSION_BUS_ADDRESS": "unix:abstract=x", "XDG_RUNTIME_DIR": "/"})
        == "unix:abstract=x"
    )
