"""``custody evacuate plan``, ``start``, ``status`` and ``again``: exposed vaults are moved to vaults of other
keys (docs/operate/incidents.md).
"""

from typing import TYPE_CHECKING

import click

from custody.cli.advisories import meant_advisory
from custody.cli.changes import plan_lines
from custody.cli.common import confirm, fail, in_btc, json_option, yes_option
from custody.cli.desk import Desk, pass_desk
from custody.cli.meant import chosen, place_of, workspace_option
from custody.cli.members import candidates_of
from custody.naming import Candidate
from custody.terminal import Exit, answer, aside, say, table

if TYPE_CHECKING:
    from custody.cli.meant import Place
    from custody.client import Client
    from custody.schemas.evacuations import EvacuatedVault, Evacuation, EvacuationRequest

START = "/api/v1/start-evacuation"


@click.group("evacuate")
def evacuate() -> None:
    """Move the coins of exposed vaults to vaults with other keys. It always takes two people."""


def _wanted(function: click.decorators.FC) -> click.decorators.FC:
    """Adds the options that define a plan."""
    options = (
        click.option(
            "--advisory", metavar="ADVISORY",
            help="Every key that it concerns: its name, or the beginning of it.",
        ),
        click.option(
            "--key", "keys", multiple=True, metavar="KEY",
            help="An exposed key's id, as custody vault show --json has it; again for each.",
        ),
        click.option(
            "--instead", multiple=True, nargs=2, metavar="KEY MEMBER",
            help="Who takes the place of that key's holder; default: the platform proposes somebody.",
        ),
        click.option(
            "--priority", type=click.Choice(("low", "medium", "high")), default="high",
            help="Of the sweeps' fee.",
        ),
        workspace_option,
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


@evacuate.command("plan")
@pass_desk
@_wanted
@json_option
def plan_command(
    desk: Desk,
    advisory: str | None,
    keys: tuple[str, ...],
    instead: tuple[tuple[str, str], ...],
    priority: str,
    workspace: str | None,
    as_json: bool,
) -> None:
    """Show what an evacuation would do. Nothing is changed."""
    with desk.client() as client:
        plan = client.preview_evacuation(
            _request(client, place_of(client, workspace), advisory, keys, instead, priority)
        )
    if as_json:
        answer(plan)
    else:
        for line in plan_lines(plan):
            say(line)


@evacuate.command("start")
@pass_desk
@_wanted
@yes_option
@json_option
def start_command(
    desk: Desk,
    advisory: str | None,
    keys: tuple[str, ...],
    instead: tuple[tuple[str, str], ...],
    priority: str,
    workspace: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Show the plan, and request it. It starts when a second person confirms."""
    from custody.schemas.evacuations import StartEvacuationRequest

    with desk.client() as client:
        place = place_of(client, workspace)
        request = _request(client, place, advisory, keys, instead, priority)
        plan = client.preview_evacuation(request)
        for line in plan_lines(plan):
            aside(line)
        if all(each.cannot is not None for each in plan.vaults):
            hint = "The plan says why each vault is not moved."
            fail("there is nothing to evacuate", hint, Exit.NOT_DECIDED)
        confirm(desk.answers, f"Ask a second person for the plan {plan.plan_hash[:8]}?", yes=yes)
        body = StartEvacuationRequest(**request.model_dump(), plan_hash=plan.plan_hash)
        change = client.request_change(place.workspace_id, START, body)
    if as_json:
        answer(change)
        return
    say(f"Asked for: change {change.change_id}, plan {plan.plan_hash[:8]}. Nothing is made yet.")
    say(f"  Somebody else confirms it: custody change confirm {change.change_id}")
    say("  Then: custody evacuate status")


_evacuation_option = click.option(
    "--evacuation", metavar="ID", help="Its id, as status has it; default: the newest."
)


@evacuate.command("status")
@pass_desk
@_evacuation_option
@workspace_option
@json_option
def status_command(desk: Desk, evacuation: str | None, workspace: str | None, as_json: bool) -> None:
    """Report how far an evacuation is, vault by vault, and when it got there."""
    with desk.client() as client:
        one = _meant(client, place_of(client, workspace), evacuation)
    if as_json:
        answer(one)
        return
    second = one.confirmed_by_name or "another member"
    say(f"Evacuation {one.evacuation_id}, plan {one.plan_hash[:8]}")
    say(f"  by {one.started_by_name} and {second}, {one.started_at:%Y-%m-%d %H:%M:%S} UTC")
    for words, moment in (
        ("every replacement made", one.replaced_at),
        ("every sweep awaits approval", one.proposed_at),
        ("every sweep confirmed", one.confirmed_at),
    ):
        if moment is not None:
            say(f"  {words} after {(moment - one.started_at).total_seconds():.0f} s")
    table(("VAULT", "STAGE", "UNSIGNED", "SWEPT", "LEFT", "REPLACEMENT"), [_row(each) for each in one.vaults])
    for each in one.vaults:
        if each.reason is not None:
            say(f"  {each.vault_name}: {each.reason}")
        if each.may_sweep_again:
            left = f"{in_btc(each.left_sats)} BTC are left in {each.vault_name}"
            say(f"  {left}: custody evacuate again {each.vault_id} --evacuation {one.evacuation_id}")


@evacuate.command("again")
@pass_desk
@click.argument("given", metavar="VAULT", help="The old vault: its id, the beginning of it, or its name.")
@_evacuation_option
@workspace_option
@yes_option
@json_option
def again_command(
    desk: Desk, given: str, evacuation: str | None, workspace: str | None, yes: bool, as_json: bool
) -> None:
    """Sweep what an evacuated vault received later, to the same replacement."""
    from custody.schemas.evacuations import SweepAgainRequest

    with desk.client() as client:
        place = place_of(client, workspace)
        one = _meant(client, place, evacuation)
        known = {each.vault_id: each for each in one.vaults}
        candidates = [
            Candidate(each.vault_id, (each.vault_name,), f"'{each.vault_name}'") for each in known.values()
        ]
        hint = "custody evacuate status lists them."
        wanted = known[chosen(given, candidates, "vault", hint, unseen=yes)]
        aside(f"{in_btc(wanted.left_sats)} BTC in '{wanted.vault_name}' go to '{wanted.replacement_name}'")
        confirm(desk.answers, "Propose that sweep?", yes=yes)
        done = client.sweep_again(
            SweepAgainRequest(
                workspace_id=place.workspace_id, evacuation_id=one.evacuation_id, vault_id=wanted.vault_id
            )
        )
    if as_json:
        answer(done)
    else:
        say("Asked for: custody evacuate status shows the sweep.")


def _request(
    client: "Client",
    place: "Place",
    advisory: str | None,
    keys: tuple[str, ...],
    instead: tuple[tuple[str, str], ...],
    priority: str,
) -> "EvacuationRequest":
    """Raises Stop."""
    from custody.schemas.evacuations import EvacuationRequest

    if advisory is None and not keys:
        fail("no exposed key is named", "Name an --advisory, or each --key.", Exit.USAGE)
    members = candidates_of(client.members(place.workspace_id)) if instead else []
    hint = "custody member list lists them."
    return EvacuationRequest.model_validate(
        {
            "workspace_id": place.workspace_id,
            "exposed_keys": list(dict.fromkeys(keys)),
            "advisory_id": None if advisory is None else meant_advisory(client, advisory).advisory_id,
            "substitutes": {key: int(chosen(one, members, "member", hint)) for key, one in instead},
            "priority": priority,
        }
    )


def _meant(client: "Client", place: "Place", evacuation: str | None) -> "Evacuation":
    """Raises Stop; ApiError (no such evacuation)."""
    found = client.evacuations(place.workspace_id, evacuation)
    if not found:
        hint = "custody evacuate start asks for one."
        fail("no evacuation was started in this workspace", hint, Exit.NOT_DECIDED)
    return found[0]


def _row(each: "EvacuatedVault") -> tuple[str, ...]:
    amounts = (f"{in_btc(sats)} BTC" for sats in (each.unsigned_sats, each.swept_sats, each.left_sats))
    return each.vault_name, each.stage, *amounts, each.replacement_id or ""
