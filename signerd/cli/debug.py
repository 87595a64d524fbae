"""debug bundle."""

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from signerd.cli.desk import Desk, json_option, pass_desk, yes_option
from signerd.cli.terminal import Exit, answer, aside, say

if TYPE_CHECKING:
    from signerd.shapes import DeviceView, Status


@click.group()
def debug() -> None:
    """Information for support."""


@debug.command()
@pass_desk
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Where to; else it is only shown."
)
@yes_option
@json_option
def bundle(desk: Desk, out: Path | None, yes: bool, as_json: bool) -> None:
    """Show what you can send for support: versions, findings, counts. No key, address, transaction, name,
    mail, host, path or token is in it. It is shown in full before it is written.
    """
    from signerd.doctor.bundle import bundle as collect
    from signerd.doctor.examining import examine
    from signerd.doctor.finding import Patient
    from signerd.errors import FileNotWritten
    from signerd.journal.storage import write_new

    status, devices = _asked(desk)
    patient = Patient(desk.state, Path("/"), os.environ, time.time, status)
    found = examine(patient, waiting=lambda names: aside(f"Still looking: {', '.join(names)}…"))
    collected = collect(patient, found, devices)
    text = json.dumps(collected, indent=2, ensure_ascii=False)
    if as_json:
        answer(collected)
    else:
        say(text)
    if out is None:
        return
    if not yes and not desk.answers.yes(f"This is all of it. Write it to {out}?"):
        raise click.exceptions.Exit(Exit.DECLINED)
    try:
        write_new(out, f"{text}\n".encode())
    except OSError as error:
        raise FileNotWritten(f"{out} cannot be written: {error.strerror}") from error


def _asked(desk: Desk) -> "tuple[Status | None, tuple[DeviceView, ...]]":
    """From the daemon; nothing if it does not run."""
    from signerd.errors import SignerdError

    try:
        with desk.daemon() as daemon:
            return daemon.status(), daemon.devices()
    except SignerdError:
        return None, ()
