"""Every table, in whatever namespace this runs: `python -m benchmarks.devices.inside [--fixed-addresses]`."""

import asyncio
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.devices import bare
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
from firmware_bridge.model import Family
from tests.support.namespace import raise_loopback
from tests.support.virtual import vault

NAME = "Treasury"


async def run(*, fixed: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="bench") as folder, ExitStack() as stack:
        desks = [stack.enter_context(desk(family, Path(folder), fixed=fixed)) for family in COMPARED]
        _head("milliseconds, best of several rounds in turns; from the PSBT's text to the signed PSBT's text")
        async with bridge_to(each.ours for each in desks) as bridge:
            _row("", "list", await listing(bridge, fixed=fixed))
        for each in desks:
            await _make_known(each)
            _row(each.family, "attach → ready", await attaching(each))
            await _compare(each)


async def _compare(each: Desk) -> None:
    async with bridge_to([each.ours]) as bridge:
        with bare.opened(each.bare.endpoint) as client:
            rivals = Rivals(each, bridge, client, vault())
            _row(each.family, "xpub", await rivals.xpub())
            for inputs in SIZES:
                _row(each.family, f"sign {inputs}", await rivals.sign(inputs))


async def _make_known(each: Desk) -> None:
    """The vault, to every device of the family: HWI cannot, and a Coldcard then signs for whoever asks."""
    devices = [device for device in (each.ours, each.bare, each.command) if device is not None]
    async with bridge_to(devices) as bridge:
        for device in await bridge.list():
            await bridge.enrol(device.id, vault(), NAME)


def _head(title: str) -> None:
    print(f"devices: {title}")
    print(
        f"{'':>10} {'':>15} {OURS:>9} {BARE:>9} {COMMAND:>9} {f'{OURS} ÷ {BARE}':>11} {f'{COMMAND} ÷ {OURS}':>11}"
    )


def _row(family: Family | str, operation: str, figures: Figures) -> None:
    cells = [_cell(figures.get(name)) for name in (OURS, BARE, COMMAND)]
    ratios = [_ratio(figures, OURS, BARE), _ratio(figures, COMMAND, OURS)]
    print(f"{family:>10} {operation:>15} {' '.join(cells)} {' '.join(ratios)}", flush=True)


def _cell(figure: float | None) -> str:
    return f"{'-' if figure is None else format(figure, '.3f' if figure < 0.1 else '.1f'):>9}"


def _ratio(figures: Figures, over: str, under: str) -> str:
    if over not in figures or under not in figures:
        return f"{'-':>11}"
    return f"{figures[over] / figures[under]:11.2f}"


if __name__ == "__main__":
    is_isolated = "--fixed-addresses" in sys.argv[1:]
    if is_isolated:
        raise_loopback()
    asyncio.run(run(fixed=is_isolated))
