"""The makes that the contract is run over, their differences as data, and what every test of the contract
does.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

import pytest

from device_simulators.errors import NoSuchPrompt
from device_simulators.faults import Faults
from device_simulators.panel import approve_all
from device_simulators.seed import Seed
from firmware_bridge import Bridge, Busy, Device, DeviceState, Family, Question
from multisig import Vault, signer_progress
from tests.conformance import payments, remote, rigs
from tests.conformance.rigs import ACCOUNT, PATIENCE, SEEDS, Rig
from tests.support.virtual import Record

VAULT = rigs.make_vault()
NAME = "Savings"
PIN = "1234"


@dataclass(frozen=True)
class Make:
    """A family of devices, virtual or faked.

    `enrols`: a person confirms a vault once on the device. `proves`: what it says then is kept by the
    bridge, not by the device. `clears`: given up, it takes its question off the screen. `pin`: options of
    a device with a PIN; `types_pin`: it is entered at the computer. `screens`: kinds of prompts that one
    payment, with change, is shown in. `partial`: it hands over what it has signed where some inputs are
    left unsigned.
    """

    family: Family
    fake: bool = False
    enrols: bool = False
    proves: bool = False
    clears: bool = False
    pin: Mapping[str, object] = field(default_factory=dict)
    types_pin: bool = False
    screens: tuple[str, ...] = ("sign-output", "sign-total")
    partial: bool = True

    @property
    def name(self) -> str:
        return f"fake-{self.family}" if self.fake else str(self.family)

    def rig(self, folder: Path, *, seed: Seed = SEEDS[0], faults: Faults | None = None, **options) -> Rig:
        if remote.RUN.remote is not None:
            return remote.make_remote_rig(
                remote.RUN.remote, self.family, seed, faults, fake=self.fake, **options
            )
        if self.fake:
            return rigs.make_fake(self.family, seed=seed, faults=faults, **options)
        return rigs.make_rig(self.family, folder, seed=seed, faults=faults, **options)


TREZOR = Make(Family.TREZOR, clears=True, pin={"pin": PIN}, types_pin=True, partial=False)
COLDCARD = Make(Family.COLDCARD, enrols=True, screens=("sign-transaction",))
LEDGER = Make(Family.LEDGER, enrols=True, proves=True, screens=("sign-transaction",))
VIRTUAL = (TREZOR, COLDCARD, LEDGER)
# One fake for each way in which vaults are known.
FAKES = (
    Make(Family.TREZOR, fake=True, clears=True, pin={"pin": PIN}, types_pin=True),
    Make(Family.COLDCARD, fake=True, clears=True, pin={"pin": PIN}, types_pin=True, enrols=True),
    Make(Family.LEDGER, fake=True, clears=True, pin={"pin": PIN}, types_pin=True, enrols=True, proves=True),
)
ALL = VIRTUAL + FAKES
FAST = (*VIRTUAL, FAKES[-1])
ENROLLING = tuple(make for make in ALL if make.enrols)
# Busy for a moment after its question, or until a key is pressed; the other makes are free at once.
_STAYS_BUSY = frozenset({Family.COLDCARD, Family.LEDGER})
# What each asks the person about.
ASKS = {
    "sign": lambda bridge, device: bridge.sign(device.id, payments.make_spend(VAULT), VAULT),
    "sign_message": lambda bridge, device: bridge.sign_message(device.id, "I am here", ACCOUNT / "0/0"),
}


def named(make: Make) -> str:
    """How pytest calls it."""
    return make.name


class Shown(Record):
    """What the device's panel shows from now on."""

    def __init__(self, rig: Rig) -> None:
        super().__init__(rig.panel)

    @property
    def kinds(self) -> list[str]:
        if "" in super().kinds:
            pytest.skip("these eyes cannot tell what kind of screen it is")
        return super().kinds

    @property
    def text(self) -> str:
        return "\n".join(line for prompt in self.prompts for line in prompt.lines)

    def says(self, words: str) -> bool:
        """Wherever a small screen ends its lines."""
        return bare(words) in bare(self.text)

    def pays(self, address: str) -> bool:
        """Whether it is shown as leaving; the vault's own is told otherwise, or not at all."""
        lines = (line for prompt in self.prompts for line in takewhile(_is_no_change, prompt.lines))
        return bare(address) in bare("".join(line for line in lines if "hange" not in line))


def bare(text: str) -> str:
    """Without white space and line ends."""
    return "".join(text.split())


def _is_no_change(line: str) -> bool:
    """A Coldcard's screen lists what comes back below a line of its own."""
    return line != "Change back:"


class Person:
    """Answers what they are asked; PIN places are looked up on the device's screen."""

    def __init__(self, rig, pin=PIN, passphrase=""):
        self.answers = {Question.PIN: pin, Question.PASSPHRASE: passphrase}
        self.asked = []
        self.matrix = "123456789"
        self._shown = asyncio.Event()
        self._must_look = rig.is_remote
        rig.panel.watch(self._look)

    def _look(self, event):
        if event.prompt.kind == "pin":
            # Shown as on the device: 7 8 9 above 4 5 6 above 1 2 3.
            digits = bare("".join(event.prompt.lines))[-9:]
            self.matrix = digits[6:] + digits[3:6] + digits[:3]
            self._shown.set()

    async def __call__(self, question):
        self.asked.append(question)
        answer = self.answers[question]
        if question == Question.PIN and self._must_look:
            async with asyncio.timeout(PATIENCE):
                await self._shown.wait()
        if question == Question.PIN and answer is not None:
            return "".join(str(self.matrix.index(digit) + 1) for digit in answer)
        return answer


async def enrol(bridge: Bridge, device: Device, vault: Vault = VAULT) -> None:
    await bridge.enrol(device.id, vault, NAME)


@asynccontextmanager
async def enrolled(rig: Rig, **options) -> AsyncIterator[tuple[Bridge, Device]]:
    """The device plugged in, which knows the vault."""
    async with rigs.bridged(rig, **options) as (bridge, [device]):
        await enrol(bridge, device)
        yield bridge, device


async def sign_and_check(bridge: Bridge, device: Device, rig: Rig, psbt=None, **options):
    """Signed by this device on every input."""
    signed = await bridge.sign(
        device.id, payments.make_spend(VAULT) if psbt is None else psbt, VAULT, **options
    )
    assert signer_progress(signed, VAULT, rig.seed.fingerprint).is_complete
    return signed


def settle(rig: Rig) -> None:
    """A person tidies up: what is still on the screen is answered, and everything is approved from now on."""
    rig.panel.script = approve_all
    with suppress(NoSuchPrompt):
        rig.panel.press_yes()


async def _free_again(bridge: Bridge, device: Device, rig: Rig) -> None:
    """The device still does what the person has just said yes to; a Ledger tells every host meanwhile that it
    is busy, and a Coldcard with a signature that was not collected does so until a key is pressed.
    """
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await enrol(bridge, device)
            except Busy:
                with suppress(NoSuchPrompt):
                    rig.panel.press_no()
                continue
            return


async def works_again(bridge: Bridge, device: Device, rig: Rig) -> None:
    """Keys, enrolment and a signature, and the device is ready, after anything that happened before."""
    await rig.looked()
    if rig.panel.pending is not None:
        settle(rig)
    rig.panel.script = approve_all
    if not rig.is_fake and rig.family in _STAYS_BUSY:
        await _free_again(bridge, device, rig)
    assert (await bridge.xpub(device.id, ACCOUNT)).fingerprint == rig.seed.fingerprint
    await enrol(bridge, device)
    await sign_and_check(bridge, device, rig)
    (now,) = await bridge.list()
    assert now.state == DeviceState.READY
