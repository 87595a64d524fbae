"""Prints every table: `python -m benchmarks.devices.inside [--fixed-addresses]`."""

import asyncio
import sys
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from benchmarks.devices import bare, registered, workers
from benchmarks.devices.desk import COMPARED, Desk, desk
from benchmarks.devices.rivals import (
    BARE,
    COMMAND,
    OURS,
    SIZES,
    Figures,
    Rivals,
    attaching,
    bridge_to,
    listing,
)
from benchmarks.devices.table import print_row, print_title, ratio
from firmware_bridge.enrolment import RegistrationsInMemory
from firmware_bridge.model import Family
from tests.support.namespace import raise_loopback
from tests.support.virtual import vault

NAME = "Treasury"


async def run(*, fixed: bool) -> None:
    registrations = RegistrationsInMemory()
    with tempfile.TemporaryDirectory(prefix="bench") as folder, ExitStack() as stack:
        desks = [stack.enter_context(desk(family, Path(folder), fixed=fixed)) for family in COMPARED]
        for each in desks:
            await _make_known(each, registrations)
        await _compare_with_hwi(desks, registrations, fixed=fixed)
        for each in desks:
            if each.family == Family.LEDGER:
                await _compare_with_proof(each, registrations)
                await _compare_at_hardware_pace(Path(folder), registrations)
        await _measure_workers(desks, registrations)


async def _make_known(each: Desk, registrations: RegistrationsInMemory) -> None:
    """Enrols the vault on every device: HWI cannot, and a Coldcard then signs for every caller."""
    devices = [device for device in (each.ours, each.bare, each.command) if device is not None]
    async with bridge_to(devices, registrations) as bridge:
        for device in await bridge.list():
            await bridge.enrol(device.id, vault(), NAME)


async def _compare_with_hwi(
    desks: Iterable[Desk], registrations: RegistrationsInMemory, *, fixed: bool
) -> None:
    print_title(
        "milliseconds, best of several rounds in turns; from the PSBT's text to the signed PSBT's text"
    )
    print_row("", "", OURS, BARE, COMMAND, f"{OURS} ÷ {BARE}", f"{COMMAND} ÷ {OURS}")
    async with bridge_to((each.ours for each in desks), registrations) as bridge:
        _compared("", "list", await listing(bridge, fixed=fixed))
    for each in desks:
        _compared(each.family, "attach → ready", await attaching(each))
        async with bridge_to([each.ours], registrations) as bridge:
            with bare.opened(each.bare.endpoint) as client:
                rivals = Rivals(each, bridge, client, vault())
                _compared(each.family, "xpub", await rivals.xpub())
                for inputs in SIZES:
                    _compared(each.family, f"sign {inputs}", await rivals.sign(inputs))


async def _compare_with_proof(each: Desk, registrations: RegistrationsInMemory) -> None:
    print_title("a Ledger that has registered the vault: beside the bundled client with the proof at hand")
    _print_spends(await registered.spends(each, vault(), registrations))


async def _compare_at_hardware_pace(folder: Path, registrations: RegistrationsInMemory) -> None:
    pace = registered.HARDWARE_MILLISECONDS
    print_title(f"the same, with a Ledger that takes {pace} ms over each answer, as the vendor's own does")
    with desk(Family.LEDGER, folder, options=["--answer-milliseconds", str(pace)]) as slow:
        _print_spends(await registered.spends_at_hardware_pace(slow, vault(), registrations))


def _print_spends(spends: Iterable[registered.Spend]) -> None:
    names = (registered.OURS, registered.CLIENT, registered.BARE)
    print_row("", "", *names, "ours ÷ client", "ours - client", "approvals")
    for spend in spends:
        approvals = " / ".join(str(spend.approvals[name]) for name in names)
        times = spend.milliseconds
        print_row(
            Family.LEDGER,
            f"sign {spend.inputs}",
            *(times[name] for name in names),
            ratio(times, registered.OURS, registered.CLIENT),
            times[registered.OURS] - times[registered.CLIENT],
            approvals,
        )


async def _measure_workers(desks: list[Desk], registrations: RegistrationsInMemory) -> None:
    print_title("worker processes, MiB: shared pages in parts; shared pages in full")
    for name, memory in (await workers.memory(desks, registrations)).items():
        print_row("", name, memory.proportional / 1024, memory.full / 1024)
    print_title("worker processes, milliseconds: best; median")
    print_row("", "new", *workers.best_and_median(await workers.ready_ms()))
    for each in desks:
        print_row(each.family, "replaced", *workers.best_and_median(await workers.replaced_ms(each)))


def _compared(family: Family | str, operation: str, figures: Figures) -> None:
    print_row(
        family,
        operation,
        *(figures.get(name) for name in (OURS, BARE, COMMAND)),
        ratio(figures, OURS, BARE),
        ratio(figures, COMMAND, OURS),
    )


if __name__ == "__main__":
    is_isolated = "--fixed-addresses" in sys.argv[1:]
    if is_isolated:
        raise_loopback()
    asyncio.run(run(fixed=is_isolated))
