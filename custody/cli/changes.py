"""``custody change list``, ``confirm`` and ``decline``: changes that one member requests and another confirms
(docs/operate/second-person.md); and how a command requests one.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from custody.cli.access import Access, Input, asking_in_workspace, declared_of, in_workspace
from custody.cli.common import fail, give, give_list
from custody.common.naming import NamedRecord
from custody.common.terminal import Exit, aside

if TYPE_CHECKING:
    from custody.schemas.changes import Change


def make_or_ask(access: Access, call: Callable[[Input], Any], request: Input, words: str) -> None:
    """Make the call and say ``words``; where it needs a second person, request the change instead. Raises
    Stop.
    """
    from custody.client import ApiError
    from custody.schemas.changes import RequestChangeRequest

    try:
        give(access.make(call, request), words)
        return
    except ApiError as error:
        if error.problem.code != "SECOND_PERSON_NEEDED":
            raise
    aside("In this organisation a second person has to confirm that.")
    access.confirm("Ask for it?")
    change = access.client.request_change(RequestChangeRequest.of(declared_of(call), request))
    give(
        change,
        f"Asked for: change {change.change_id}. Nothing has changed yet.",
        f"  Somebody else confirms it. It {_when(change)}: custody change confirm {change.change_id}",
    )


@click.group("change")
def change() -> None:
    """Changes that wait for a second person."""


@change.command("list")
@click.option("--all", "all_of_them", is_flag=True, help="Those that are over, too.")
@in_workspace
def list_command(access: Access, all_of_them: bool) -> None:
    """List the changes that wait: those you may confirm, and your own."""
    changes = access.client.changes(workspace_id=access.workspace_id)
    shown = [one for one in changes if all_of_them or one.status == "PENDING"]
    header = ("ID", "STATUS", "ASKED BY", "WHAT", "")
    give_list(shown, header, map(_row, shown), "No changes wait.")


@change.command("confirm")
@click.argument("given", metavar="CHANGE", help="Its id, or the beginning of it.")
@asking_in_workspace
def confirm_command(access: Access, given: str) -> None:
    """Confirm what another member asked for: it is then done, in their name."""
    from custody.common.change_words import nameless_field

    one = _change_of(access, given)
    _show(one)
    if nameless_field(one):
        sentence = "it names a member, key or vault that no longer exists"
        fail(sentence, f"custody change decline {one.change_id}", Exit.NOT_DECIDED)
    access.confirm("Confirm this change?")
    give(
        access.make(access.client.confirm_change, change_id=one.change_id, in_force=one.in_force),
        f"Confirmed, and done: {_what(one)}.",
    )


@change.command("decline")
@click.argument("given", metavar="CHANGE", help="Its id, or the beginning of it.")
@click.option("--reason", help="Why, as the audit log has it.")
@asking_in_workspace
def decline_command(access: Access, given: str, reason: str | None) -> None:
    """Decline a change, or take back your own."""
    one = _change_of(access, given)
    _show(one)
    access.confirm("Decline this change?")
    done = access.make(access.client.decline_change, change_id=one.change_id, reason=reason)
    give(done, f"Declined: {_what(one)}. Nothing has changed.")


def _change_of(access: Access, given: str) -> "Change":
    """Raises Stop."""
    known = [
        NamedRecord(one.change_id, (), f"{_what(one)} of {one.asked_by_name}", one)
        for one in access.client.changes(workspace_id=access.workspace_id)
    ]
    return access.pick(given, known, "change", "custody change list lists them.")


def _what(one: "Change") -> str:
    from custody.common.change_words import title_of

    return title_of(one)


def _when(one: "Change") -> str:
    from custody.common.change_words import open_words

    return open_words(one, datetime.now(UTC))


def _row(one: "Change") -> tuple[str, ...]:
    return one.change_id, one.status.lower(), one.asked_by_name, _what(one), _when(one)


def _show(one: "Change") -> None:
    from custody.common.change_words import facts_of

    aside(f"{one.asked_by_name} asks for: {_what(one)} (change {one.change_id}, {one.status.lower()})")
    for name, words in facts_of(one):
        aside(f"  {name}: {words}")
    aside(f"  It {_when(one)}")
