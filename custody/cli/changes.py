"""``custody change list``, ``confirm`` and ``decline``: changes that one member requests and another confirms
(docs/operate/second-person.md); and how a command requests one.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from custody.cli.common import confirm, fail, json_option, yes_option
from custody.cli.desk import Desk, pass_desk
from custody.cli.meant import Place, chosen, place_of, workspace_option
from custody.naming import Candidate
from custody.terminal import Exit, answer, aside, say, table

if TYPE_CHECKING:
    from pydantic import BaseModel

    from custody.client import Client
    from custody.schemas.changes import Change


T = TypeVar("T")


def made_or_asked(
    desk: Desk,
    client: "Client",
    place: Place,
    path: str,
    body: "BaseModel",
    call: Callable[[], T],
    *,
    yes: bool,
) -> "T | Change":
    """The result of ``call``; where the organisation's rule needs a second person, the change that was
    requested instead. ``path`` and ``body``: the same call. Raises Stop.
    """
    from custody.client import ApiError

    try:
        return call()
    except ApiError as error:
        if error.problem.code != "SECOND_PERSON_NEEDED":
            raise
    aside("In this organisation a second person has to confirm that.")
    confirm(desk.answers, "Ask for it?", yes=yes)
    return client.request_change(place.workspace_id, path, body)


def told(done: "BaseModel", words: str, *, as_json: bool) -> None:
    """``words``: what is printed where the call was made at once."""
    from custody.schemas.changes import Change

    if as_json:
        answer(done)
    elif isinstance(done, Change):
        say(f"Asked for: change {done.change_id}. Nothing has changed yet.")
        say(f"  Somebody else confirms it, {_when(done)}: custody change confirm {done.change_id}")
    else:
        say(words)


@click.group("change")
def change() -> None:
    """Changes that wait for a second person."""


@change.command("list")
@pass_desk
@click.option("--all", "all_of_them", is_flag=True, help="Those that are over, too.")
@workspace_option
@json_option
def list_command(desk: Desk, all_of_them: bool, workspace: str | None, as_json: bool) -> None:
    """List the changes that wait: those you may confirm, and your own."""
    with desk.client() as client:
        found = client.changes(place_of(client, workspace).workspace_id)
    shown = [one for one in found if all_of_them or one.status == "PENDING"]
    if as_json:
        answer(shown)
    elif shown:
        header = ("ID", "STATUS", "ASKED BY", "WHAT", "")
        table(header, [_row(one) for one in shown])
    else:
        say("No changes wait.")


@change.command("confirm")
@pass_desk
@click.argument("given", metavar="CHANGE", help="Its id, or the beginning of it.")
@workspace_option
@yes_option
@json_option
def confirm_command(desk: Desk, given: str, workspace: str | None, yes: bool, as_json: bool) -> None:
    """Confirm what another member asked for: it is then done, in their name."""
    from custody.change_words import names_nothing
    from custody.schemas.changes import ChangeRequest

    with desk.client() as client:
        place = place_of(client, workspace)
        one = _change_of(client, place, given, unseen=yes)
        _show(one)
        if names_nothing(one):
            sentence = "it names a member, key or vault that no longer exists"
            fail(sentence, f"custody change decline {one.change_id}", Exit.NOT_DECIDED)
        confirm(desk.answers, "Confirm this change?", yes=yes)
        request = ChangeRequest(workspace_id=place.workspace_id, change_id=one.change_id)
        done = client.confirm_change(request)
    told(done, f"Confirmed, and done: {_what(one)}.", as_json=as_json)


@change.command("decline")
@pass_desk
@click.argument("given", metavar="CHANGE", help="Its id, or the beginning of it.")
@click.option("--reason", help="Why, as the audit log has it.")
@workspace_option
@yes_option
@json_option
def decline_command(
    desk: Desk, given: str, reason: str | None, workspace: str | None, yes: bool, as_json: bool
) -> None:
    """Decline a change, or take back your own."""
    from custody.schemas.changes import DeclineChangeRequest

    with desk.client() as client:
        place = place_of(client, workspace)
        one = _change_of(client, place, given, unseen=yes)
        _show(one)
        confirm(desk.answers, "Decline this change?", yes=yes)
        request = DeclineChangeRequest(
            workspace_id=place.workspace_id, change_id=one.change_id, reason=reason
        )
        done = client.decline_change(request)
    if as_json:
        answer(done)
    else:
        say(f"Declined: {_what(one)}. Nothing has changed.")


def _change_of(client: "Client", place: Place, given: str, *, unseen: bool) -> "Change":
    """Raises Stop."""
    known = {one.change_id: one for one in client.changes(place.workspace_id)}
    candidates = [
        Candidate(one.change_id, (), f"{_what(one)} of {one.asked_by_name}") for one in known.values()
    ]
    return known[chosen(given, candidates, "change", "custody change list lists them.", unseen=unseen)]


def _what(one: "Change") -> str:
    from custody.change_words import title_of

    return title_of(one)


def _when(one: "Change") -> str:
    return f"from {one.not_before:%Y-%m-%d %H:%M} until {one.expires_at:%Y-%m-%d %H:%M} UTC"


def _row(one: "Change") -> tuple[str, ...]:
    return one.change_id, one.status.lower(), one.asked_by_name, _what(one), _when(one)


def _show(one: "Change") -> None:
    from custody.change_words import facts_of

    aside(f"{one.asked_by_name} asks for: {_what(one)} (change {one.change_id}, {one.status.lower()})")
    for name, words in facts_of(one):
        aside(f"  {name}: {words}")
    aside(f"  may be confirmed {_when(one)}")
