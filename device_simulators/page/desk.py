"""Virtual devices side by side: what each shows, and who is told when that changes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from device_simulators.errors import NoSuchPrompt

Press = Callable[[int, bool], Awaitable[None]]
"""The number of a prompt, and whether it is the right button: yes."""


@dataclass(frozen=True)
class DeviceScreen:
    """What one device shows. ``number``: of the prompt that waits for a button, 0 where none does.

    ``no``, ``turn`` and ``yes``: the words on its buttons, as in ``panel.Prompt``. ``ended``: what became of
    the last prompt, where the screen is empty.
    """

    lines: tuple[str, ...] = ()
    number: int = 0
    no: str = ""
    turn: str = ""
    yes: str = ""
    ended: str = ""

    @property
    def left(self) -> str:
        """The words of the left button; empty where there is none."""
        return self.no or self.turn

    @classmethod
    def after(cls, event: Mapping[str, Any]) -> "DeviceScreen | None":
        """What a device shows after one line of ``device_simulators.cli``'s JSON; None where that changes
        nothing.
        """
        match event:
            case {"event": "prompt", "id": int(number), "lines": [*lines], "no": no, "yes": yes}:
                return cls(tuple(lines), number, no=no, turn=event.get("turn", ""), yes=yes)
            case {"event": "notice", "lines": [*lines]}:
                return cls(tuple(lines))
            case {"event": "approved" | "refused" | "withdrawn" | "unplugged" | "locked" as ended}:
                return cls(ended=ended)
            case _:
                return None


@dataclass
class Stand:
    """One device's place on the desk. ``about``: a line under its title."""

    title: str
    about: str
    press: Press
    screen: DeviceScreen = field(default_factory=DeviceScreen)


@dataclass
class Story:
    """What the devices are used for: ``step`` of ``steps`` is played, counted from 1, and then ``end``."""

    steps: tuple[tuple[str, str], ...] = ()
    end: tuple[str, str] = ("", "")
    step: int = 0
    log: tuple[str, ...] = ()
    question: str = ""
    shown: str = ""
    answers: tuple[str, ...] = ()
    number: int = 0
    links: tuple[str, ...] = ()


@dataclass
class SimulatorDesk:
    """One loop uses it. ``reply`` gets the story's answers; ``follow`` makes the document of a link."""

    title: str
    stands: list[Stand] = field(default_factory=list)
    story: Story = field(default_factory=Story)
    reply: Callable[[str], None] | None = None
    follow: Callable[[str], Awaitable[str]] | None = None
    _revision: int = 0
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, stand: Stand) -> None:
        self.stands.append(stand)
        self.changed()

    def show(self, stand: Stand, screen: DeviceScreen) -> None:
        stand.screen = screen
        self.changed()

    def changed(self) -> None:
        self._revision += 1
        self._news.set()
        self._news = asyncio.Event()

    async def press(self, place: int, number: int, *, yes: bool) -> None:
        """Press a button of the device at ``place`` (from 0), if prompt ``number`` is on its screen still.

        :raises NoSuchPrompt: it is not, or the screen has no such button.
        """
        if not 0 <= place < len(self.stands):
            raise NoSuchPrompt("there is no such device")
        stand = self.stands[place]
        if not number or number != stand.screen.number:
            raise NoSuchPrompt("another screen is shown by now")
        if not yes and not stand.screen.left:
            raise NoSuchPrompt("no button of this screen says no")
        await stand.press(number, yes)

    def answer(self, number: int, words: str) -> None:
        """Answer question ``number`` of the story. Raises NoSuchPrompt: it is over, or has other answers."""
        if not self.reply or not number or number != self.story.number or words not in self.story.answers:
            raise NoSuchPrompt("another question is asked by now")
        self.reply(words)

    async def views(self) -> AsyncIterator[dict[str, Any]]:
        """What is shown, now and after each change. A slow reader gets the last one only."""
        while True:
            seen, news = self._revision, self._news
            devices = [
                {"title": its.title, "about": its.about, **asdict(its.screen), "left": its.screen.left}
                for its in self.stands
            ]
            yield {"title": self.title, "story": asdict(self.story), "devices": devices}
            if seen == self._revision:
                await news.wait()
