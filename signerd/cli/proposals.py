"""proposals, show, approve, reject."""

from typing import TYPE_CHECKING, Annotated

import typer

from signerd.cli.desk import Desk, Json, Yes, desk_of
from signerd.cli.output import Exit, answer, aside, say, table
from signerd.cli.words import proposal_text, standing_words
from signerd.core.states import ASKED, DELIVERED, ON_THE_WAY, network_words, state_words
from signerd.core.text import amount
from signerd.errors import IllegalEvent, NeedsAcknowledgement, RefusedByChecks

if TYPE_CHECKING:
    from signerd.cli.follow import Tell
    from signerd.client import DaemonClient
    from signerd.shapes import ProposalLine, ProposalView

PsbtId = Annotated[str, typer.Argument(metavar="ID", help="The proposal, as `signerd proposals` lists it.")]


def proposals(
    context: typer.Context,
    ended: Annotated[bool, typer.Option("--all", help="Also those that have come to an end.")] = False,
    as_json: Json = False,
) -> None:
    """List the proposals known here."""
    with desk_of(context).daemon() as daemon:
        lines = daemon.proposals(ended=ended)
    if as_json:
        answer(lines)
    elif not lines:
        say("No proposal is here.")
    else:
        table(("ID", "NETWORK", "VAULT", "PAYS", "FEE", "SIGNED", "STATE"), [_row(line) for line in lines])


def _row(line: "ProposalLine") -> tuple[str, ...]:
    return (
        line.psbt_id,
        line.network,
        "(your profile)" if line.from_profile and line.brought_by else line.vault_name or "(not pinned)",
        _paid(line),
        "not known" if line.fee_sats is None else amount(line.fee_sats),
        f"brought by {line.brought_by}" if line.brought_by else f"{line.collected} of {line.required}",
        standing_words(line),
    )


def _paid(line: "ProposalLine") -> str:
    """A token's transaction pays nobody: what it does stands beside."""
    if line.paid_sats is None:
        return "not known"
    return f"{amount(line.paid_sats)}, {line.token}" if line.token else amount(line.paid_sats)


def show(context: typer.Context, psbt_id: PsbtId, as_json: Json = False) -> None:
    """Show where the money goes, and every check."""
    with desk_of(context).daemon() as daemon:
        view = daemon.proposal(psbt_id)
    if as_json:
        answer(view)
    else:
        say(proposal_text(view))


def approve(
    context: typer.Context,
    psbt_id: PsbtId,
    acknowledge: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A warning that you have read and sign despite."),
    ] = None,
    wait: Annotated[bool, typer.Option(help="Wait for the device and the platform.")] = True,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Show a proposal, ask, and have it signed on the device."""
    desk, tell = desk_of(context), aside if as_json else say
    with desk.daemon() as daemon:
        view = daemon.proposal(psbt_id)
        final = decided(desk, daemon, view, frozenset(acknowledge or ()), tell, wait=wait, yes=yes)
    if as_json:
        answer(final)
    raise typer.Exit(status_of(final))


def decided(
    desk: Desk,
    daemon: "DaemonClient",
    view: "ProposalView",
    acknowledged: frozenset[str],
    tell: "Tell",
    *,
    wait: bool,
    yes: bool,
) -> "ProposalView":
    """Show it, ask, and wait for the device; how it stands then. Raises typer.Exit where the person says no."""
    tell(proposal_text(view) + "\n")
    position = daemon.status().position
    if not _already_approved(view):
        named = _acknowledged(desk, view, acknowledged, ask=not yes)
        if not yes and not desk.answers.yes(f"Sign this on {network_words(view.network)}?"):
            tell("Nothing was approved.")
            raise typer.Exit(Exit.DECLINED)
        daemon.approve(view.psbt_id, view.digest, named)
    return _outcome(daemon, view.psbt_id, position, tell, wait=wait)


def _already_approved(view: "ProposalView") -> bool:
    """Whether there is nothing left to ask. Raises IllegalEvent, RefusedByChecks where asking would be in vain."""
    if view.state in ON_THE_WAY:
        return True
    if view.state in ASKED and view.allowed:
        return False
    if view.state in {*ASKED, "refused"}:
        names = ", ".join(check.name for check in view.checks if check.outcome == "refuse")
        raise RefusedByChecks(f"these checks refuse it: {names}")
    raise IllegalEvent(f"the proposal cannot be approved: {state_words(view.state)}")


def _acknowledged(desk: Desk, view: "ProposalView", named: frozenset[str], *, ask: bool) -> frozenset[str]:
    """The warnings that the person named, on the command line or now."""
    missing = [name for name in view.to_acknowledge if name not in named]
    if missing and not ask:
        raise NeedsAcknowledgement(f"these warnings must be named first: {', '.join(missing)}")
    for name in missing:
        if desk.answers.line(f"To sign despite the warning, type its name ({name})").strip() != name:
            raise NeedsAcknowledgement(f"the warning '{name}' was not named")
    return named | frozenset(missing)


def _outcome(
    daemon: "DaemonClient", psbt_id: str, position: int, tell: "Tell", *, wait: bool
) -> "ProposalView":
    from signerd.cli.follow import until_decided

    if not wait:
        return daemon.proposal(psbt_id)
    try:
        return until_decided(daemon, psbt_id, position, tell)
    except KeyboardInterrupt:
        aside(
            "Your approval stands, and signerd goes on with it. `signerd reject` takes it back until it is signed."
        )
        raise typer.Exit(Exit.INTERRUPTED) from None


def status_of(final: "ProposalView") -> Exit:
    return Exit.OK if final.state in DELIVERED | ON_THE_WAY else Exit.NOT_SIGNED


def reject(
    context: typer.Context,
    psbt_id: PsbtId,
    reason: Annotated[str, typer.Option(help="Why; the platform shows it to the others.")] = "",
    as_json: Json = False,
) -> None:
    """Decline a proposal; the platform is told."""
    with desk_of(context).daemon() as daemon:
        line = daemon.reject(psbt_id, reason)
    if as_json:
        answer(line)
    else:
        say(f"Proposal {line.psbt_id}: {standing_words(line)}")


COMMANDS = (proposals, show, approve, reject)
