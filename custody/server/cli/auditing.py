"""``custody audit``: checks the audit log, signs checkpoints of it, and exports it for an auditor to check
elsewhere.

Exit status: 0 everything agrees, 11 something is wrong and named; the others as docs/sign/cli.md has them.
"""

import re
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from custody.cli.common import fail, give, json_option, wants_json
from custody.common.terminal import Exit, answer, aside, say
from custody.common.text import count
from custody.server.cli.common import refusals, state_option, stored_at

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from custody.server.audit.verification import Report
    from custody.server.rules.audit import ExportSummary


checkpoints_option = click.option(
    "--checkpoints",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A file of checkpoints; again for each. Default: the platform's own.",
)
key_option = click.option(
    "--public-key",
    multiple=True,
    help="A key that may sign checkpoints, in hex; again for each. Default: those of the platform's own "
    "secrets.",
)


@click.group()
def audit() -> None:
    """The audit log."""


@audit.command("verify")
@state_option
@checkpoints_option
@key_option
@json_option
def verify_command(state: Path, checkpoints: tuple[Path, ...], public_key: tuple[str, ...]) -> None:
    """Check every hash chain, the checkpoints, and each against the other; name the first bad row of each
    chain.

    With --public-key nothing of the platform's own machine is believed but the rows and the files.
    """
    from custody.server.audit.verification import check_everything

    with stored_at(state) as stored:
        own = stored.checkpoints
        files = checkpoints or ((own.path,) if own.path.exists() else ())
        trusted = _trusted(own.public_keys, public_key)
        started = time.perf_counter()
        report = check_everything(stored.store, files, trusted)
        seconds = time.perf_counter() - started
    if wants_json():
        answer({**vars(report), "whole": not report.findings, "seconds": round(seconds, 3)})
    else:
        _tell(report)
    if report.findings:
        raise click.exceptions.Exit(Exit.AUDIT)


@audit.command("checkpoint")
@state_option
@json_option
def checkpoint_command(state: Path) -> None:
    """Sign how long every chain is and what it ends with, into a file apart from the database. A server does
    it too.
    """
    from custody.server.audit.checkpoints import CannotCheckpoint

    with stored_at(state) as stored:
        own = stored.checkpoints
        try:
            made = own.make()
        except CannotCheckpoint as error:
            fail(str(error), error.hint)
    lines = (
        ["Nothing was recorded since the last checkpoint."]
        if made is None
        else [
            f"Checkpoint {made.number} is in {own.path}.",
            f"Its digest, to be kept elsewhere: {made.digest}",
        ]
    )
    shown = {"file": str(own.path), "checkpoint": made, "digest": made and made.digest}
    give(shown, *lines)


@audit.command("public-key")
@state_option
@json_option
def public_key_command(state: Path) -> None:
    """Print the keys that sign the checkpoints, the one in use first: for --public-key, on another
    machine.
    """
    with stored_at(state) as stored:
        keys = list(stored.checkpoints.public_keys())
    give({"public_keys": keys}, *keys)


@audit.command("export")
@state_option
@click.option("--chain", default="platform", help="platform, organisation:ID or workspace:ID")
def export_command(state: Path, chain: str) -> None:
    """Write a whole chain as CSV, as export-audit-logs does, however long; also those that no workspace
    reads.
    """
    from custody.server.audit.log import chained_rows
    from custody.server.rules.audit import PLATFORM_CHAIN, write_csv
    from custody.server.store.models.bookkeeping import AuditEventRow

    with stored_at(state) as stored, stored.store.read() as db:
        # An empty file would look like a chain in which nothing happened.
        if chain != PLATFORM_CHAIN and not _is_there(db, chain):
            fail(
                f"There is no chain {chain}.",
                "Name platform, organisation:ID or workspace:ID, with an id that exists.",
                Exit.NOT_DECIDED,
            )
        with closing(chained_rows(db, AuditEventRow.chain_id == chain)) as rows:
            for line in write_csv(rows):
                sys.stdout.write(line)


@audit.command("verify-export")
@click.argument("file", type=click.Path(path_type=Path), help="A CSV as export-audit-logs gives it.")
@checkpoints_option
@key_option
@json_option
def verify_export_command(file: Path, checkpoints: tuple[Path, ...], public_key: tuple[str, ...]) -> None:
    """Check an exported CSV by itself; with checkpoints and their key, against these too. Needs no
    platform.
    """
    from custody.server.rules.audit import ExportSummary, NotAnExport, find_export_fault, read_csv
    from custody.server.rules.checkpoints import marks_of, read_file

    if bool(checkpoints) != bool(public_key):
        fail(
            "Checkpoints are believed by their key alone.",
            "Give --checkpoints and --public-key together.",
            Exit.USAGE,
        )
    seen = ExportSummary()
    with refusals():
        trusted = _trusted(tuple, public_key)
        histories = [read_file(path, trusted) for path in checkpoints or ()]
        for path, history in zip(checkpoints or (), histories, strict=True):
            if history.fault is not None:
                fail(
                    f"{path}, line {history.fault[0]}: it {history.fault[1]}.",
                    "Nothing was compared with it.",
                )
        try:
            with file.open(newline="", encoding="utf-8") as text:
                fault = find_export_fault(read_csv(text), seen, marks_of(histories))
        except (NotAnExport, UnicodeDecodeError) as error:
            fail(
                f"{file}: {error}", "Check the file that the platform gave, not one that a spreadsheet saved."
            )
    if wants_json():
        answer({**vars(seen), "fault": fault and vars(fault), "whole": fault is None})
    elif fault is not None:
        aside(f"{fault.chain_id}, row {fault.position}: {fault.sentence}")
    else:
        _tell_export(seen)
    if fault is not None:
        raise click.exceptions.Exit(Exit.AUDIT)


def _is_there(db: "Session", chain: str) -> bool:
    from sqlalchemy import select

    from custody.server.store.models.bookkeeping import AuditEventRow, AuditHeadRow

    named = (
        select(kind.chain_id).where(kind.chain_id == chain).limit(1) for kind in (AuditHeadRow, AuditEventRow)
    )
    return any(db.scalar(query) is not None for query in named)


def _tell(report: "Report") -> None:
    for finding in report.findings:
        place = f", {finding.unit} {finding.place}" if finding.place else ""
        aside(f"{finding.where}{place}: {finding.sentence}")
    if report.findings:
        return
    say("Every audit chain is whole.")
    say(
        f"{count(report.rows, 'row', 'rows')} in {count(report.chains, 'chain', 'chains')}, "
        f"{count(report.checkpoints, 'checkpoint', 'checkpoints')}."
    )
    if not report.checkpoints:
        aside(
            "No checkpoint was given: that no one rewrote a chain from its start, or cut its end, is not "
            "shown."
        )


def _tell_export(seen: "ExportSummary") -> None:
    if not seen.rows:
        say("The export holds no rows.")
        return
    left_out = "where a filter or somebody left rows out"
    gaps = f", with {count(seen.gaps, 'gap', 'gaps')}, {left_out}" if seen.gaps else ""
    rows = count(seen.rows, "row", "rows")
    say(f"{rows} of {seen.chain_id}, from {seen.first} to {seen.last}{gaps}: each as it was recorded.")
    if seen.confirmed:
        to = seen.first + seen.confirmed_rows - 1
        which = f"{seen.confirmed_rows} of the rows" if seen.gaps else f"rows {seen.first} to {to}"
        rest = "; the rest are not confirmed yet" if seen.confirmed_rows < seen.rows else ""
        say(f"Checkpoints confirm {which}{rest}.")
    else:
        aside("No checkpoint confirms a row: the file agrees with itself, which a forger can arrange.")


def _trusted(own: Callable[[], Any], given: tuple[str, ...]) -> frozenset[str]:
    for key in given:
        if not re.fullmatch("[0-9a-f]{64}", key):
            raise click.BadParameter(
                f"{key} is no public key: 64 hex digits, as custody audit public-key prints"
            )
    return frozenset(given or own())
