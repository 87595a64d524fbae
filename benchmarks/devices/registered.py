"""A vault that a Ledger has registered: our bridge, the bundled client with the registration's HMAC, and HWI,
which has none.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.devices import bare
from benchmarks.devices.desk import Desk, Device
from benchmarks.devices.rivals import SIZES, Figures, bridge_to, inline, sign, spend_text
from benchmarks.measure import rivals_ms
from firmware_bridge.enrolment import Registration, RegistrationsInMemory
from multisig import Vault

OURS, CLIENT, BARE = "ours", "client", "HWI"
_ROUNDS = 7
# Measured on the vendor's firmware: 4.4 s for ten inputs, for which the client sends 439 commands.
HARDWARE_MILLISECONDS = 10
_HARDWARE_INPUTS = (10,)
_HARDWARE_ROUNDS = 2


@dataclass(frozen=True)
class Spend:
    """A spend of so many inputs: milliseconds, and the number of prompts."""

    inputs: int
    milliseconds: Figures
    approvals: dict[str, int]


async def spends(
    desk: Desk,
    vault: Vault,
    registrations: RegistrationsInMemory,
    sizes: Sequence[int] = SIZES,
    rounds: int = _ROUNDS,
) -> list[Spend]:
    (known,) = registrations.all()
    async with bridge_to([desk.ours], registrations) as bridge:
        with bare.opened(desk.bare.endpoint) as client:
            return [
                await _compare(
                    inputs,
                    {
                        OURS: partial(sign, bridge, desk.ours.endpoint.device_id, text, vault),
                        CLIENT: inline(partial(_with_proof, client, text, vault, known)),
                        BARE: inline(partial(bare.sign, client, text)),
                    },
                    {OURS: desk.ours, CLIENT: desk.bare, BARE: desk.bare},
                    rounds,
                )
                for inputs in sizes
                for text in [spend_text(vault, inputs)]
            ]


async def spends_at_hardware_pace(
    desk: Desk, vault: Vault, registrations: RegistrationsInMemory
) -> list[Spend]:
    return await spends(desk, vault, registrations, _HARDWARE_INPUTS, _HARDWARE_ROUNDS)


def _with_proof(client: object, text: str, vault: Vault, known: Registration) -> str:
    return bare.sign_registered(client, text, bare.ledger_wallet(vault, known.name), known.hmac)


async def _compare(
    inputs: int,
    works: dict[str, Callable[[], Awaitable[object]]],
    devices: dict[str, Device],
    rounds: int,
) -> Spend:
    approvals = {}
    for name, work in works.items():
        before = devices[name].approvals()
        await work()
        approvals[name] = devices[name].approvals() - before
    return Spend(inputs, await rivals_ms(works, rounds), approvals)
