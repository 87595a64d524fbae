"""The same operations through our bridge, through HWI in this process, and through HWI's command line."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from hwilib import commands as hwi_commands

from benchmarks.devices import bare
from benchmarks.devices.command import hwi, named
from benchmarks.devices.desk import Desk, Device
from benchmarks.measure import rivals_ms
from firmware_bridge import Bridge, DeviceState, sanitised_psbt
from firmware_bridge.enrolment import Registrations
from multisig import Psbt, Vault, multisig_account_path
from tests.support.virtual import NETWORK
from tests.support.wallets import make_spend

SIZES = (1, 10, 50, 200)
PATH = multisig_account_path(NETWORK)
OURS, BARE, COMMAND = "ours", "HWI", "hwi"
# Rounds of the bridge and HWI, and of the command line, which is many times slower.
_ROUNDS, _COMMAND_ROUNDS = 7, 2
_MANY_INPUTS, _ROUNDS_OF_MANY = 50, 4

Work = Callable[[], Awaitable[object]]
Figures = dict[str, float]


class Rivals:
    """Open devices of one family on which the vault is enrolled."""

    def __init__(self, desk: Desk, bridge: Bridge, client: Any, vault: Vault) -> None:
        self._desk = desk
        self._bridge = bridge
        self._device_id = desk.ours.endpoint.device_id
        self._client = client
        self._vault = vault

    async def xpub(self) -> Figures:
        return await self._compare(
            lambda: self._bridge.xpub(self._device_id, PATH),
            inline(lambda: self._client.get_pubkey_at_path(str(PATH))),
            ("getxpub", str(PATH)),
        )

    async def sign(self, inputs: int) -> Figures:
        """From the PSBT's text to the signed PSBT's text, with the account keys, which HWI's caller adds."""
        text = spend_text(self._vault, inputs)
        rounds = _ROUNDS if inputs <= _MANY_INPUTS else _ROUNDS_OF_MANY
        return await self._compare(
            lambda: sign(self._bridge, self._device_id, text, self._vault),
            inline(lambda: bare.sign(self._client, text)),
            ("signtx", text),
            rounds,
        )

    async def _compare(
        self, ours: Work, theirs: Work, arguments: tuple[str, ...], rounds: int = _ROUNDS
    ) -> Figures:
        figures = await rivals_ms({OURS: ours, BARE: theirs}, rounds)
        if self._desk.command is None:
            return figures
        return figures | await _command_ms(*named(self._desk.command.endpoint), *arguments)


def spend_text(vault: Vault, inputs: int) -> str:
    """Each input at an address of its own, so that the sorted keys are in different orders."""
    return base64.b64encode(sanitised_psbt.for_device(make_spend(vault, n_inputs=inputs), vault)).decode()


async def sign(bridge: Bridge, device_id: str, text: str, vault: Vault) -> str:
    return (await bridge.sign(device_id, Psbt.parse(text), vault)).to_base64()


@asynccontextmanager
async def bridge_to(
    devices: Iterable[Device], registrations: Registrations | None = None
) -> AsyncIterator[Bridge]:
    """A bridge on which these devices are ready."""
    endpoints = [device.endpoint for device in devices]
    async with Bridge(network=NETWORK, endpoints=endpoints, usb=False, registrations=registrations) as bridge:
        states = [device.state for device in await bridge.refresh()]
        if states != [DeviceState.READY] * len(endpoints):
            raise RuntimeError(states)
        yield bridge


async def attaching(desk: Desk) -> Figures:
    """Finds, opens and closes the device, and reads its fingerprint. HWI's command line reads every one."""

    async def ours() -> None:
        async with bridge_to([desk.ours]):
            pass

    figures = await rivals_ms({OURS: ours, BARE: inline(lambda: bare.attach(desk.bare.endpoint))}, _ROUNDS)
    return figures if desk.command is None else figures | await _command_ms("enumerate")


async def listing(bridge: Bridge, *, fixed: bool) -> Figures:
    """Lists devices: the bridge from memory; HWI opens every device of seven makers each time."""
    figures = await rivals_ms({OURS: bridge.list}, 100)
    if not fixed:
        return figures
    scan = inline(lambda: hwi_commands.enumerate(chain=bare.CHAIN, allow_emulators=True))
    return figures | await rivals_ms({BARE: scan}, _COMMAND_ROUNDS) | await _command_ms("enumerate")


async def _command_ms(*arguments: str) -> Figures:
    return await rivals_ms({COMMAND: lambda: hwi(*arguments)}, _COMMAND_ROUNDS)


def inline(work: Callable[[], object]) -> Work:
    """Runs blocking HWI on the loop: nothing else runs, and a thread would cost time."""

    async def run() -> object:
        await asyncio.sleep(0)
        return work()

    return run
