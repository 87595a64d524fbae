"""From the feed to the desktop: which lines cause a notice, how often, and in which words.

A notice may show on a lock screen, so it has no amount and no name unless configured.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from enum import Enum, unique
from pathlib import Path

from custody.common.text import plain
from signerd.feed import WAITS, Feed, Sleep
from signerd.runtime import alongside
from signerd.shapes import Happened

PAIRING = "pairing"
# Two lines of a notification.
LONGEST_DETAIL = 160
NOT_ON_SCREEN = "Your device will not show all of it."
# Markup to some desktops (Desktop Notifications Specification 1.2, "Markup").
_MARKUP = str.maketrans("", "", "<>&")


@unique
class NoticeKind(Enum):
    """Singular and plural, the most urgent first; ``urgent``: stays until dismissed."""

    ALARM = ("signerd warns you", "signerd warns you of {count} matters", True)
    QUESTION = ("A device asks you something", "Devices ask you {count} things", True)
    PAIRING = ("An app asks to be paired", "Apps ask to be paired, {count} times", False)
    PROPOSAL = ("A proposal waits for your decision", "{count} proposals wait for your decision", False)
    DEVICE = (
        "An approved proposal waits for its device",
        "{count} approved proposals wait for a device",
        False,
    )
    REFUSED = ("A proposal was refused by a check", "{count} proposals were refused by checks", False)
    TROUBLE = ("A payment gets no further", "{count} payments get no further", False)
    BROADCAST = ("A payment was sent to the network", "{count} payments were sent to the network", False)

    @property
    def urgent(self) -> bool:
        return bool(self.value[2])

    def words(self, count: int) -> str:
        one, many, _urgent = self.value
        return str(one) if count == 1 else str(many).format(count=count)


@dataclass(frozen=True)
class Notice:
    """``body`` may be empty."""

    title: str
    body: str
    urgent: bool


_STATES = {
    "waiting-for-device": NoticeKind.DEVICE,
    "refused": NoticeKind.REFUSED,
    "broadcast": NoticeKind.BROADCAST,
}


# A proposal's title by its id; None for any other subject.
Titles = Callable[[str], str | None]


def kind_of(line: Happened) -> NoticeKind | None:
    """None for a line that causes no notice."""
    match line.kind:
        case "alarm":
            return NoticeKind.ALARM
        case "question":
            return NoticeKind.QUESTION
        case "trouble":
            return NoticeKind.TROUBLE
        case "ask":
            return NoticeKind.PAIRING if line.subject == PAIRING else NoticeKind.PROPOSAL
        case "state":
            return _STATES.get(line.text)
        case _:
            return None


def notice_of(lines: Iterable[Happened], titles: Titles | None) -> Notice | None:
    """One notice for all lines, titled by the most urgent kind; None where no line causes one. ``titles``
    None: no details.

    Two lines of one kind about one subject count once.
    """
    groups: dict[NoticeKind, dict[str, Happened]] = {}
    for line in lines:
        kind = kind_of(line)
        if kind is not None:
            groups.setdefault(kind, {})[line.subject] = line
    if not groups:
        return None
    pressing = [kind for kind in NoticeKind if kind in groups]
    title, *others = [kind.words(len(groups[kind])) for kind in pressing]
    body = [f"{other}." for other in others]
    if any(line.text.startswith(f"{WAITS} ") for line in groups.get(NoticeKind.PROPOSAL, {}).values()):
        body.append(NOT_ON_SCREEN)
    if titles is not None:
        body.append(_details([line for kind in pressing for line in groups[kind].values()], titles))
    return Notice(f"{title}.", " ".join(body), any(kind.urgent for kind in groups))


def _details(lines: Sequence[Happened], titles: Titles) -> str:
    """For one line its text, after the title of its proposal; for several their subjects, the most urgent
    first: the end may be cut.
    """
    if len(lines) == 1:
        [line] = lines
        words = "" if line.kind == "state" else line.text.removeprefix(WAITS).strip()
        about = titles(line.subject) or ("" if words else line.subject)
        text = ". ".join(part for part in (about, words) if part)
    else:
        text = ", ".join(titles(line.subject) or line.subject for line in lines)
    text = plain(text).translate(_MARKUP)
    return text if len(text) <= LONGEST_DETAIL else text[: LONGEST_DETAIL - 1] + "…"


def session_bus(environment: Mapping[str, str] = os.environ) -> str | None:
    """The address of the session bus (sd-bus(3), D-Bus specification); None where there is none."""
    given = environment.get("DBUS_SESSION_BUS_ADDRESS")
    if given:
        return given
    folder = environment.get("XDG_RUNTIME_DIR")
    if not folder:
        return None
    usual = Path(folder) / "bus"
    return f"unix:path={usual}" if usual.is_socket() else None


async def show(notice: Notice) -> bool:
    """Whether a desktop accepted it."""
    address = session_bus()
    if address is None:
        return False
    # Imported here: the doctor asks only where the bus is.
    from signerd.notifying.desktop import send

    return await send(address, notice.title, notice.body, urgent=notice.urgent)


Show = Callable[[Notice], Awaitable[bool]]
# A platform that is reachable again causes many lines at once: one notice.
GATHER_SECONDS = 2.0
# More notices than this are noise, in which an important one could be hidden (L6).
PAUSE_SECONDS = 15.0
# Bounds one wait; on expiry it starts again.
_QUIET_SECONDS = 3600.0

_log = logging.getLogger(__name__)


async def notify(feed: Feed, titles: Titles | None, show: Show = show, sleep: Sleep = asyncio.sleep) -> None:
    """Until cancelled; no error of a notice ends it. ``titles``: adds names and the daemon's sentences; None:
    counts only.
    """
    position = feed.last
    while True:
        if not await feed.wait(position, None, _QUIET_SECONDS):
            continue
        await sleep(GATHER_SECONDS)
        lines = feed.since(position)
        position = feed.last
        if (notice := notice_of(lines, titles)) is not None:
            try:
                await show(notice)
            except Exception:  # noqa: BLE001 - whatever the desktop does, the daemon goes on
                _log.warning("the desktop accepted no notice", exc_info=True)
            await sleep(PAUSE_SECONDS)


def notifying(feed: Feed, mode: str, titles: Titles) -> AbstractAsyncContextManager[object]:
    """Sends notices during the body. ``mode``: the value of ``[notifications] show``."""
    return nullcontext() if mode == "off" else alongside(notify(feed, titles if mode == "details" else None))
