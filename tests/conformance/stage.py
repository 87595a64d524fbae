"""A device on which a situation is played, and what was seen of it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from device_simulators.panel import Decision, Happening, PanelEvent, Prompt, Script, approve_all, ask_person
from firmware_bridge import Bridge, BridgeError, Device
from multisig import CHANGE, RECEIVE, Policy, Psbt, encode_address
from tests.conformance import makes, payments, remote
from tests.conformance.makes import NAME, VAULT, Make
from tests.conformance.rigs import ACCOUNT, NETWORK, PATIENCE, SEEDS, Rig, running
from tests.conformance.transcripts import Screen

SIGNED = "signed"


@dataclass(frozen=True)
class Played:
    """One operation's end. `screens` is None where the situation is about the end alone."""

    outcome: str
    detail: str
    seconds: float
    screens: tuple[Screen, ...] | None


@dataclass
class Stage:
    """`values` are what the placeholders of the transcripts stand for; a player adds its own."""

    make: Make
    rig: Rig
    bridge: Bridge
    device: Device
    values: dict[str, str] = field(default_factory=lambda: dict(VALUES))

    async def enrol(self) -> None:
        await makes.enrol(self.bridge, self.device)

    def sign(self, psbt: Psbt | None = None, policy: Policy = VAULT, **options: object) -> Awaitable[Psbt]:
        psbt = payments.make_spend(policy, n_inputs=1) if psbt is None else psbt
        return self.bridge.sign(self.device.id, psbt, policy, **options)

    async def press_no(self) -> None:
        self.rig.panel.press_no()

    async def cancel(self) -> None:
        await self.bridge.cancel(self.device.id)

    async def unplug(self) -> None:
        await self.rig.unplug()

    async def mend(self) -> None:
        await self.rig.mend()

    async def kill(self) -> None:
        self.rig.workers[-1].kill()

    async def play(
        self, operation: Awaitable[object], script: Script = approve_all, *, answer: str = "answered"
    ) -> Played:
        """Do it with this person at the buttons. `answer` is the outcome's word where it gives one."""
        self.rig.panel.script = script
        shown: list[Screen] = []
        unwatch = self.rig.panel.watch(lambda event: _take(shown, event))
        clock = asyncio.get_running_loop().time
        outcome, detail, started = answer, "", clock()
        try:
            await operation
        except BridgeError as error:
            outcome, detail = type(error).__name__, error.detail or str(error)
        seconds = clock() - started
        try:
            await self.rig.looked()
        finally:
            unwatch()
        return Played(outcome, detail, seconds, tuple(shown))

    async def at_each_screen(
        self,
        operation: Callable[[], Awaitable[object]],
        strike: Callable[[], Awaitable[None]],
        recover: Callable[[], Awaitable[None]] | None = None,
    ) -> list[Played]:
        """Do it again and again: approve none, one, two, … screens, then `strike` while the next one waits;
        once for each screen that has an answer. What was shown until then is what is always shown.
        """
        whole = await self.play(operation())
        questions = [screen for screen in whole.screens if not screen.notice]
        assert questions, "nothing is asked"
        ends = []
        for number in range(len(questions)):
            asked = asyncio.Event()
            async with running(self.play(operation(), _wait_after(number, asked))) as playing:
                async with asyncio.timeout(PATIENCE):
                    await asked.wait()
                await strike()
                played = await playing
            until_then = [screen for screen in played.screens if not screen.notice]
            assert seen(until_then) == seen(questions[: number + 1])
            ends.append(Played(played.outcome, played.detail, played.seconds, None))
            if recover is not None:
                await recover()
            await makes.works_again(self.bridge, self.device, self.rig)
        return ends

    async def struck(
        self, operation: Awaitable[object], strike: Callable[[], Awaitable[None]], **words: str
    ) -> Played:
        """Do it, and `strike` while its first question waits for an answer."""
        async with running(self.play(operation, ask_person, **words)) as playing:
            await self.rig.shown("")
            await strike()
            return await playing


def seen(screens: Sequence[Screen]) -> list[object]:
    """Where eyes read a screen: its words, wherever its lines end."""
    if remote.RUN.remote is None:
        return list(screens)
    return [makes.bare("".join(screen.lines)) for screen in screens]


def _take(shown: list[Screen], event: PanelEvent) -> None:
    if event.happening in {Happening.SHOWN, Happening.NOTICE}:
        prompt = event.prompt
        shown.append(Screen(prompt.lines, prompt.no, prompt.yes, event.happening is Happening.NOTICE))


def _wait_after(approved: int, asked: asyncio.Event) -> Script:
    """Yes to so many screens, then nothing is pressed."""
    left = approved

    def decide(_prompt: Prompt) -> Decision:
        nonlocal left
        left -= 1
        if left >= 0:
            return Decision.YES
        asked.set()
        return Decision.WAIT

    return decide


Player = Callable[[Stage], Awaitable[Played | list[Played]]]
VALUES = {
    "name": NAME,
    "account": str(ACCOUNT),
    "payee": encode_address(payments.pay(1).script_pubkey, NETWORK),
    "change": VAULT.address(CHANGE, 7),
    "address": VAULT.address(RECEIVE, 0),
    **{f"fingerprint{number}": str(seed.fingerprint) for number, seed in enumerate(SEEDS, 1)},
    **{f"xpub{number}": str(seed.xpub(ACCOUNT, NETWORK)) for number, seed in enumerate(SEEDS, 1)},
}
