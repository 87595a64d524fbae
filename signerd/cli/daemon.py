"""run, status, doctor, debug, audit, completion."""

import json
import os
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from custody.common.terminal import Exit, aside, put
from custody.common.text import count
from signerd.cli.desk import Desk, answering, asking, pass_desk, path_option, write_file
from signerd.core.states import network_words
from signerd.errors import SignerdError

if TYPE_CHECKING:
    from signerd.account.config import Config
    from signerd.doctor.finding import DoctorFinding, Installation
    from signerd.shapes import DeviceView, Status


@pass_desk
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each line.")
def run(desk: Desk, as_json: bool) -> None:
    """Run the daemon in the foreground until Ctrl-C or SIGTERM."""
    from signerd.cli.foreground import run_daemon

    run_daemon(desk.state, desk.answers, as_json=as_json)


@answering
def status(desk: Desk) -> None:
    """Show what the daemon does and what it needs."""
    report = desk.daemon.status()
    reachable = "reachable" if report.platform_reachable else "not reached"
    backup = f"{report.backup_made_at}, fingerprint {report.backup_fingerprint}"
    signed_in = f"signed in as {report.email}" if report.signed_in else "signed out"
    desk.give(
        report,
        f"signerd {report.version}    {network_words(report.network)}\n"
        f"  platform   {report.platform_url}, {reachable}, {signed_in}\n"
        f"  session    kept in: {report.secrets}\n"
        f"  your key   {report.fingerprint or 'not registered'}\n"
        f"  devices    {report.devices_ready} ready or in use\n"
        f"  vaults     {report.vaults_pinned} pinned\n"
        f"  proposals  {report.waiting_for_you} wait for you\n"
        f"  journal    {count(report.journal_entries, 'entry', 'entries')}, head {report.journal_head}\n"
        f"  backup     {backup if report.backup_made_at else 'none was made'}\n"
        f"  state      {report.state_folder}\n"
        f"  page       {f'`signerd open`; apps call {report.page_url}' if report.page_url else 'not served'}",
        *(f"! {note}" for note in report.notes),
    )


_MARKS = {"well": "ok", "note": "note", "trouble": "TROUBLE", "unknown": "?"}


@answering
def doctor(desk: Desk) -> None:
    """Check for common problems, with advice on each. Changes nothing; exit status 1 where there is a
    problem, else 0.
    """
    _, findings = examined(desk)
    desk.give(findings, *(finding_text(name, finding) for name, finding in findings.items()))
    troubled = any(finding.outcome == "trouble" for finding in findings.values())
    raise click.exceptions.Exit(Exit.FAILED if troubled else Exit.OK)


def examined(
    desk: Desk, config: "Config | None" = None, only: Collection[str] | None = None
) -> "tuple[Installation, dict[str, DoctorFinding]]":
    """What the doctor finds. ``only``: these checks."""
    from signerd.doctor.examining import CHECKS, examine
    from signerd.doctor.finding import Installation

    status: Status | None = None
    with suppress(SignerdError):
        status = desk.daemon.status()
    installation = Installation(desk.state, Path("/"), os.environ, time.time, status, config)
    checks = {name: check for name, check in CHECKS.items() if only is None or name in only}
    return installation, examine(
        installation, checks, waiting=lambda names: aside(f"Still looking: {', '.join(names)}…")
    )


def finding_text(name: str, finding: "DoctorFinding") -> str:
    more = (finding.why, f"→ {finding.do}" if finding.do else "")
    details = [] if finding.outcome == "well" else [f"{'':<24}{text}" for text in more if text]
    return "\n".join([f"{_MARKS[finding.outcome]:<8} {name:<14} {finding.found}", *details])


@click.group()
def audit() -> None:
    """The chain of decisions."""


@audit.command()
@answering
def verify(desk: Desk) -> None:
    """Check that no entry of the journal's chain was edited, removed or moved."""
    from signerd.daemon.views import report_of_file

    report = desk.daemon.verify_audit() if desk.running() else report_of_file(desk.state)
    whole = (
        f"Whole: {count(report.entries, 'entry', 'entries')}. Head: {report.head}",
        "A tail that was cut off shows only by comparing this with a head that you wrote down before.",
    )
    desk.give(report, *(whole if report.fault is None else (f"NOT WHOLE: {report.fault}.",)))
    raise click.exceptions.Exit(Exit.OK if report.fault is None else Exit.AUDIT)


@audit.command("start-over")
@asking
def begin_anew(desk: Desk) -> None:
    """Begin with an empty journal, where the old one is lost or was set aside as damaged."""
    from signerd.journal.storage import held, start_over

    with held(desk.state):
        desk.tell(
            "What was signed before will be unknown here: a payment that was made already is not recognised."
        )
        desk.tell(
            "Registered keys and pinned vaults are forgotten too. A journal that was set aside stays where "
            "it is."
        )
        desk.confirm("Begin with an empty journal?")
        start_over(desk.state)
    desk.give({"begun_anew": True}, "The next start begins with an empty journal.")


# The variable that click's completion reads.
VARIABLE = "_SIGNERD_COMPLETE"


@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what completes commands in your shell; it writes no file. For bash: eval "$(signerd completion
    bash)".
    """
    from click.shell_completion import get_completion_class

    completion_class = get_completion_class(shell)
    assert completion_class is not None, "one of the shells that click knows"
    put(completion_class(context.find_root().command, {}, "signerd", VARIABLE).source())


@click.group()
def debug() -> None:
    """Information for support."""


@debug.command()
@path_option("--out", metavar="FILE", help="Where to; else it is only shown.")
@asking
def bundle(desk: Desk, out: Path | None) -> None:
    """Show what you can send for support: versions, findings, counts. No key, address, transaction, name,
    mail, host, path or token is in it. It is shown in full before it is written.
    """
    from signerd.doctor.bundle import bundle as collect

    devices: tuple[DeviceView, ...] = ()
    with suppress(SignerdError):
        devices = desk.daemon.devices()
    collected = collect(*examined(desk), devices)
    text = json.dumps(collected, indent=2, ensure_ascii=False)
    desk.give(collected, text)
    if out is None:
        return
    desk.confirm(f"This is all of it. Write it to {out}?")
    write_file(out, f"{text}\n".encode())
