"""Gathered, merged, throttled; and whatever the desktop does, it goes on. A real private bus, a small desktop
on it; and what there may be instead of a desktop. What a desktop is told: counts
in plain words, and what it is about only where the person asked for that.
"""

import asyncio
import contextlib
import shutil

import pytest
from dbus_fast.aio import MessageBus
from dbus_fast.service import ServiceInterface, dbus_method

from signerd.feed import LINES_KEPT, WAITS, Feed
from signerd.notifying import desktop as at_desktop
from signerd.notifying.notifier import (
    GATHER_SECONDS,
    LONGEST_DETAIL,
    NOT_ON_SCREEN,
    PAUSE_SECONDS,
    Notice,
    NoticeKind,
    kind_of,
    notice_of,
    notify,
    show,
)
from signerd.shapes import Happened
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.anyio


TITLES = {"8bdd": "Pay 0.1234 BTC to Acme"}.get


class Desk:
    """The desktop and the clock of one notifier; every wait is let go by hand."""

    def __init__(self, *, broken=False):
        self.feed, self.shown, self.waits, self.broken = Feed(), [], [], broken
        self.go = asyncio.Semaphore(0)
        self.asleep = asyncio.Event()

    async def show(self, notice):
        self.shown.append(notice)
        if self.broken:
            raise OSError("no more processes")
        return True

    async def sleep(self, seconds):
        self.waits.append(seconds)
        self.asleep.set()
        await self.go.acquire()

    async def let_go(self):
        await asyncio.wait_for(self.asleep.wait(), PATIENCE)
        self.asleep.clear()
        self.go.release()

    async def notify(self):
        await notify(self.feed, None, show=self.show, sleep=self.sleep)


async def running(desk):
    task = asyncio.create_task(desk.notify())
    await asyncio.sleep(0)
    return task


async def ended(task):
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_burst_is_one_notice_and_the_next_one_waits():
    desk = Desk()
    task = await running(desk)
    for number in range(1000):
        desk.feed.add(f"p-{number}", "ask", "x")
    await desk.let_go()
    await asyncio.wait_for(desk.asleep.wait(), PATIENCE)
    assert [notice.title for notice in desk.shown] == ["1000 proposals wait for your decision."]
    assert desk.waits == [GATHER_SECONDS, PAUSE_SECONDS]
    desk.feed.add("p-x", "ask", "x")
    await asyncio.sleep(0)
    assert len(desk.shown) == 1
    await ended(task)


async def test_l6_an_alarm_is_shown_whatever_follows_it_during_the_pause():
    desk = Desk()
    task = await running(desk)
    desk.feed.add("p-0", "ask", "x")
    await desk.let_go()
    await asyncio.wait_for(desk.asleep.wait(), PATIENCE)
    assert desk.waits == [GATHER_SECONDS, PAUSE_SECONDS]
    desk.feed.add("p-1", "alarm", "ALARM: the platform shows another transaction under this proposal's id.")
    for number in range(LINES_KEPT):
        desk.feed.add(f"q-{number}", "ask", "x")
    await desk.let_go()
    await desk.let_go()
    await asyncio.wait_for(desk.asleep.wait(), PATIENCE)
    assert desk.shown[1].title == "signerd warns you."
    assert desk.shown[1].urgent
    await ended(task)


@pytest.mark.parametrize("broken", [True, False])
async def test_a_desktop_that_fails_ends_nothing(broken):
    desk = Desk(broken=broken)
    task = await running(desk)
    for _ in range(2):
        desk.feed.add("p-1", "ask", "x")
        await desk.let_go()
        await desk.let_go()
    await ended(task)
    assert len(desk.shown) == 2


BUS = pytest.mark.skipif(
    shutil.which("dbus-daemon") is None, reason="dbus-daemon is not installed (Debian: dbus)"
)
CONFIGURATION = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={path}</listen>
<policy context="default"><allow send_destination="*"/>
<allow receive_sender="*"/><allow own="*"/></policy></busconfig>
"""


def desktop(*, mute=False):
    class Desktop(ServiceInterface):
        def __init__(self):
            super().__init__(at_desktop.NAME)
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
    connection.export(at_desktop.PATH, service)
    await connection.request_name(at_desktop.NAME)
    yield service
    connection.disconnect()


@BUS
async def test_a_desktop_is_told_and_given_up_where_it_does_not_answer(bus):
    async with listening(bus, desktop()) as service:
        for urgent, urgency in ((False, at_desktop.NORMAL), (True, at_desktop.CRITICAL)):
            assert await show(Notice("Title <b>", "Body “ä”", urgent))
            assert service.told.pop() == ("signerd", "Title <b>", "Body “ä”", urgency)
    async with listening(bus, desktop(mute=True)):
        assert not await at_desktop.send(bus, "Title", "Body", urgent=False, seconds=1)


def line(subject, kind, text="x", number=1):
    return Happened(number=number, subject=subject, kind=kind, text=text)


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        (line("p-1", "ask"), NoticeKind.PROPOSAL),
        (line("pairing", "ask"), NoticeKind.PAIRING),
        (line("device-1", "question"), NoticeKind.QUESTION),
        (line("p-1", "alarm"), NoticeKind.ALARM),
        (line("p-1", "state", "waiting-for-device"), NoticeKind.DEVICE),
        (line("p-1", "state", "refused"), NoticeKind.REFUSED),
        (line("p-1", "state", "broadcast"), NoticeKind.BROADCAST),
        (line("p-1", "trouble"), NoticeKind.TROUBLE),
        (line("p-1", "state", "signed"), None),
        *((line("p-1", quiet), None) for quiet in ("progress", "info", "attention", "device")),
    ],
)
def test_what_is_told(told, kind):
    assert kind_of(told) is kind


def test_the_most_pressing_is_the_title():
    lines = [
        line("p-1", "ask"),
        line("p-2", "alarm", "Two payments spend one coin."),
        line("p-3", "state", "refused"),
    ]
    notice = notice_of(lines, None)
    assert notice.title == "signerd warns you."
    assert notice.body == "A proposal waits for your decision. A proposal was refused by a check."
    assert notice.urgent


def test_l6_l8_a_proposal_is_named_by_its_title_and_only_where_details_are_asked_for():
    for kind, text in (("ask", WAITS), ("state", "broadcast"), ("state", "refused")):
        assert notice_of([line("8bdd", kind, text)], TITLES).body == "Pay 0.1234 BTC to Acme"
        assert notice_of([line("8bdd", kind, text)], None).body == ""
    screen = f"{WAITS} Your device shows the first 31 bytes."
    assert notice_of([line("8bdd", "ask", screen)], TITLES).body.endswith(
        "Pay 0.1234 BTC to Acme. Your device shows the first 31 bytes."
    )
    # The most pressing first, where the end is cut (L6).
    many = notice_of([*(line(f"p-{n}", "ask") for n in range(100)), line("vault-9", "alarm")], TITLES)
    assert many.body.startswith("100 proposals wait for your decision. vault-9, p-0, p-1")
    assert many.body.endswith("…")
    for kind in ("ask", "alarm", "question"):
        hidden = notice_of([line("tb1-12.5-BTC", kind, "Pay 12.5 BTC to Evil")], None)
        assert "12.5" not in hidden.title + hidden.body


def test_l8_details_carry_no_markup_and_no_control_characters():
    notice = notice_of([line("p-1", "alarm", "<b>Pay</b> &amp;\x1b[2J\u202eTSR " + "x" * 500)], TITLES)
    assert not {"<", ">", "&", "\x1b", "\u202e"} & set(notice.body)
    assert len(notice.body) <= LONGEST_DETAIL
    assert "Pay" in notice.body


def test_s28_what_the_device_will_not_show_is_told_without_what_it_is():
    asked = line("p-1", "ask", f"{WAITS} Your Trezor One shows the first 31 of the 59 bytes.")
    assert notice_of([asked], None).body == NOT_ON_SCREEN
    assert "31 of the 59" in notice_of([asked], TITLES).body
    assert notice_of([line("p-1", "ask", WAITS)], None).body == ""
