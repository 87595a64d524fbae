"""doctor."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from signerd.cli.desk import Desk, Json, desk_of
from signerd.cli.output import Exit, answer, aside, say

if TYPE_CHECKING:
    from signerd.doctor.finding import Finding
    from signerd.shapes import Status

_MARKS = {"well": "ok", "note": "note", "trouble": "TROUBLE", "unknown": "?"}


def doctor(context: typer.Context, as_json: Json = False) -> None:
    """Find the common trouble and say what to do. Changes nothing; exit status 1 where there is trouble, else 0."""
    from signerd.doctor.examining import examine
    from signerd.doctor.finding import Outcome, Patient

    desk = desk_of(context)
    patient = Patient(desk.state, Path("/"), os.environ, time.time, _status(desk))
    found = examine(patient, waiting=lambda names: aside(f"Still looking: {', '.join(names)}…"))
    if as_json:
        answer({name: _value(finding) for name, finding in found.items()})
    else:
        for name, finding in found.items():
            _show(name, finding)
    troubled = any(finding.outcome is Outcome.TROUBLE for finding in found.values())
    raise typer.Exit(Exit.FAILED if troubled else Exit.OK)


def _status(desk: Desk) -> "Status | None":
    from signerd.errors import SignerdError

    try:
        with desk.daemon() as daemon:
            return daemon.status()
    except SignerdError:
        return None


def _value(finding: "Finding") -> dict[str, str]:
    return {
        "outcome": finding.outcome.value,
        "found": finding.found,
        "why": finding.why,
        "do": finding.do,
    }


def _show(name: str, finding: "Finding") -> None:
    say(f"{_MARKS[finding.outcome]:<8} {name:<14} {finding.found}")
    for text in (finding.why, f"→ {finding.do}" if finding.do else ""):
        if text and finding.outcome != "well":
            say(f"{'':<24}{text}")


COMMANDS = (doctor,)
