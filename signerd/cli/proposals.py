"""proposals, show, approve, decline; inspect, sign: a PSBT from a file or standard input, unknown to the
platform.
"""

import sys
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from custody.common.terminal import Exit, answer, aside, put, say
from signerd.cli.desk import (
    Desk,
    answering,
    asking,
    path_option,
    read_file,
    require_new,
    verbose_option,
    write_file,
)
from signerd.cli.naming import proposal_named
from signerd.cli.progress import until_decided
from signerd.cli.words import payment_lines, proposal_text, proposals_text, psbt_text, standing_words
from signerd.core.states import ASKED, DECLINABLE, DELIVERED, ON_THE_WAY, State, network_words
from signerd.errors import AnswerMissing, IllegalEvent, InvalidRequest, NeedsAcknowledgement, RefusedByChecks
from signerd.shapes.limits import MAX_PSBT_BODY
from signerd.standing import line_words

if TYPE_CHECKING:
    from signerd.shapes import ImportedView, ProposalView, PsbtVersion


acknowledge_option = click.option(
    "--acknowledge", multiple=True, metavar="NAME", help="A warning that you have read and sign despite."
)
file_argument = click.argument(
    "file", metavar="FILE", help="The PSBT, binary or base64; - reads standard input."
)
psbt_id_argument = click.argument(
    "psbt_id", metavar="ID", help="The proposal: its id, the beginning of it, or your name of whom it pays."
)

psbt_version_option = click.option(
    "--psbt-version",
    type=click.Choice(["0", "2"]),
    help="Of the PSBT that is written: 0 (BIP-174) or 2 (BIP-370). Default: as it came, or 0.",
)


@click.option("--all", "ended", is_flag=True, help="Also those that have come to an end.")
@answering
def proposals(desk: Desk, ended: bool) -> None:
    """List the proposals known here."""
    lines = desk.daemon.proposals(ended=ended)
    desk.give(lines, proposals_text(lines) if lines else "No proposal is here.")


@psbt_id_argument
@verbose_option
@answering
def show(desk: Desk, psbt_id: str, verbose: bool) -> None:
    """Show where the money goes, and every check."""
    view = proposal_named(desk.daemon, psbt_id)
    desk.give(view, proposal_text(view, verbose=verbose))


@psbt_id_argument
@acknowledge_option
@click.option("--wait/--no-wait", default=True, help="Wait for the device and the platform.")
@verbose_option
@asking
def approve(desk: Desk, psbt_id: str, acknowledge: tuple[str, ...], wait: bool, verbose: bool) -> None:
    """Show a proposal, ask, and have it signed on the device."""
    view = proposal_named(desk.daemon, psbt_id, unseen=desk.yes)
    final = decided(desk, view, acknowledge, wait=wait, verbose=verbose)
    desk.give(final)
    raise click.exceptions.Exit(status_of(final))


def decided(
    desk: Desk, view: "ProposalView", acknowledged: tuple[str, ...], *, wait: bool, verbose: bool
) -> "ProposalView":
    """Show it, ask, and wait for the device. Returns the proposal afterwards. Raises click.exceptions.Exit
    where the person declines.
    """
    desk.tell(proposal_text(view, verbose=verbose) + "\n")
    position = desk.daemon.status().position
    if not _already_approved(view):
        approved(desk, view, acknowledged)
    return outcome(desk, view.psbt_id, position, wait=wait)


def approved(
    desk: Desk, view: "ProposalView", acknowledged: tuple[str, ...], question: str = "Sign this"
) -> None:
    """Ask about what was shown, and record the approval. Raises click.exceptions.Exit where the person
    declines.
    """
    named = _acknowledged(desk, view, frozenset(acknowledged))
    if named != frozenset(acknowledged) and (pays := payment_lines(view.money)):
        # What was typed stands between the question and whom it pays.
        desk.tell("\n".join(pays))
    desk.confirm(f"{question} on {network_words(view.network)}?", "Nothing was approved.")
    desk.daemon.approve(view.psbt_id, view.digest, named)


def _already_approved(view: "ProposalView") -> bool:
    """Whether it is approved already. Raises IllegalEvent, RefusedByChecks where it cannot be approved."""
    if view.state in ON_THE_WAY:
        return True
    if view.state in ASKED and view.allowed:
        return False
    if view.state in {*ASKED, "refused"}:
        raise refused_by_checks(view)
    hint = view.on_decline if view.state == State.DECLINED else None
    raise IllegalEvent(f"the proposal cannot be approved: {line_words(view)}", hint=hint)


def refused_by_checks(view: "ProposalView") -> RefusedByChecks:
    names = ", ".join(check.name for check in view.checks if check.outcome == "refuse")
    return RefusedByChecks(f"these checks refuse it: {names}")


def _acknowledged(desk: Desk, view: "ProposalView", named: frozenset[str]) -> frozenset[str]:
    """The warnings that the person named, on the command line or now. Raises InvalidRequest (a name that is
    no check's), NeedsAcknowledgement.
    """
    from signerd.core.rules.values import RULE_NAMES

    # A rule that does not hold this proposal has no check, and its name is no mistake.
    if unknown := named - {check.name for check in view.checks} - set(RULE_NAMES):
        names = ", ".join(sorted(unknown))
        raise InvalidRequest(
            f"no check of this proposal has the name {names}",
            hint=f"`signerd show {view.psbt_id}` has the names of its checks.",
        )
    missing = [name for name in view.to_acknowledge if name not in named]
    if missing and desk.yes:
        raise NeedsAcknowledgement(f"these warnings must be named first: {', '.join(missing)}")
    for name in missing:
        if desk.answers.line(f"To sign despite the warning, type its name ({name})").strip() != name:
            raise NeedsAcknowledgement(f"the warning '{name}' was not named")
    return named | frozenset(missing)


def outcome(desk: Desk, psbt_id: str, position: int, *, wait: bool) -> "ProposalView":
    if not wait:
        return desk.daemon.proposal(psbt_id)
    try:
        return until_decided(desk.daemon, psbt_id, position, desk.tell)
    except KeyboardInterrupt:
        aside(
            "Your approval stands, and signerd goes on with it. While your device asks, a no there takes it "
            "back; else `signerd decline`, until the platform has your signature."
        )
        raise click.exceptions.Exit(Exit.INTERRUPTED) from None


def status_of(final: "ProposalView") -> Exit:
    return Exit.OK if final.state in DELIVERED | ON_THE_WAY else Exit.NOT_SIGNED


@psbt_id_argument
@click.option("--reason", default="", help="Why; the platform shows it to the others.")
@verbose_option
@asking
def decline(desk: Desk, psbt_id: str, reason: str, verbose: bool) -> None:
    """Show a proposal, ask, and decline it; the platform is told."""
    view = proposal_named(desk.daemon, psbt_id, unseen=desk.yes)
    if view.state == State.DECLINED:
        raise IllegalEvent("it is declined already", hint=view.on_decline)
    if view.state == State.SIGNING:
        raise IllegalEvent("your device is asked about it now", hint="Say no on the device.")
    if view.state not in DECLINABLE:
        raise IllegalEvent(f"it can no longer be declined: {line_words(view)}")
    if not desk.yes:
        desk.tell(f"{proposal_text(view, verbose=verbose)}\n\n{view.on_decline}\n")
        desk.confirm(f"Decline this on {network_words(view.network)}, for good?", "Nothing was declined.")
    line = desk.daemon.decline(view.psbt_id, reason)
    desk.give(line, f"Proposal {line.psbt_id}: {standing_words(line)}")


STANDARD = "-"


@file_argument
@verbose_option
@answering
def inspect(desk: Desk, file: str, verbose: bool) -> None:
    """Show what signing a PSBT would do, and every check. Nothing is stored; no approval is asked for."""
    psbt = _read_psbt(file)
    view = desk.daemon.inspect_psbt(psbt)
    desk.give(view, psbt_text(view, verbose=verbose))
    raise click.exceptions.Exit(Exit.OK if view.allowed else Exit.NOT_DECIDED)


@file_argument
@path_option("-o", "--out", metavar="OUT", help="Where to write the signed PSBT, as base64.")
@psbt_version_option
@acknowledge_option
@verbose_option
@asking
def sign(
    desk: Desk,
    file: str,
    out: Path | None,
    psbt_version: "PsbtVersion | None",
    acknowledge: tuple[str, ...],
    verbose: bool,
) -> None:
    """Show what a PSBT does, ask, have it signed on the device, and write it. It is sent nowhere."""
    from multisig.psbt import ReceivedPsbt

    desk = replace(desk, writes=True)
    # Standard input is the PSBT, so no answer can be read from it.
    if file == STANDARD and not desk.yes:
        raise AnswerMissing(
            "a PSBT from standard input leaves no input for your answer",
            hint="Give a file, or look first and add --yes.",
        )
    if out is not None:
        require_new(out)
    psbt = _read_psbt(file)
    imported, final = desk.daemon.import_psbt(psbt), None
    if imported.signed_psbt is None:
        view = desk.daemon.proposal(imported.psbt_id)
        final = decided(desk, view, acknowledge, wait=True, verbose=verbose)
    else:
        aside("You signed it before: this is the same signature again.")
    version = psbt_version or ("2" if ReceivedPsbt.parse(psbt).version else "0")
    imported = desk.daemon.imported_psbt(imported.psbt_id, version)
    if imported.signed_psbt is None and final is not None:
        raise click.exceptions.Exit(status_of(final))
    _write_signed(imported, out, as_json=desk.as_json)


def _write_signed(imported: "ImportedView", out: Path | None, *, as_json: bool) -> None:
    assert imported.signed_psbt is not None, "only a signed PSBT is written"
    if out is not None:
        hint = (
            "It is signed: the same command with another name writes it, and your device is not asked again."
        )
        write_file(out, f"{imported.signed_psbt}\n".encode(), hint)
    if as_json:
        answer(imported)
    elif out is None:
        put(imported.signed_psbt)
    else:
        say(f"Signed: {out}")
    if not as_json and imported.final is not None:
        aside(f"It is complete. It was not sent; the transaction: {imported.final}")


def _read_psbt(file: str) -> str:
    """As base64 in one line. Raises InvalidRequest; the daemon judges the content."""
    from firmware_bridge.airgap.handoff import decode_psbt
    from firmware_bridge.errors import BridgeError

    raw = (
        sys.stdin.buffer.read(MAX_PSBT_BODY + 1) if file == STANDARD else read_file(Path(file), MAX_PSBT_BODY)
    )
    if len(raw) > MAX_PSBT_BODY:
        raise InvalidRequest("standard input is larger than any PSBT that is read here")
    try:
        return b64encode(decode_psbt(raw)).decode("ascii")
    except BridgeError as error:
        hint = "Export it from your wallet as a PSBT (BIP-174 or BIP-370)."
        raise InvalidRequest(f"{file}: {error}", hint=hint) from None
