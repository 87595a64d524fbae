"""advisory add, advisory list: a publisher's signed list, and which of the person's keys it concerns."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from signerd.cli.desk import NOT_UTF_8, Desk, json_option, pass_desk, read_file
from signerd.cli.terminal import answer, say

if TYPE_CHECKING:
    from signerd.shapes import SignedAdvisory


@click.group()
def advisory() -> None:
    """Flaws of devices, as publishers that you trust sign them."""


@advisory.command("add")
@pass_desk
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def add(desk: Desk, file: Path, as_json: bool) -> None:
    """Add a publisher's signed list. Only its signature is trusted."""
    from signerd.errors import InvalidRequest
    from signerd.shapes.calls import MAX_LIST_TEXT

    try:
        text = read_file(file, MAX_LIST_TEXT).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidRequest(f"{file} is not text in UTF-8", hint=NOT_UTF_8) from None
    with desk.daemon() as daemon:
        found = daemon.take_advisories(text)
    _tell(found, as_json=as_json)


@advisory.command("list")
@pass_desk
@json_option
def list_(desk: Desk, as_json: bool) -> None:
    """The advisories in force, and what they mean for you."""
    with desk.daemon() as daemon:
        found = daemon.advisories()
    _tell(found, as_json=as_json)


def _tell(found: "tuple[SignedAdvisory, ...]", *, as_json: bool) -> None:
    if as_json:
        answer(found)
        return
    if not found:
        say("No advisory is in force.")
    for each in found:
        if each.concern == "not":
            say(f"{each.name} concerns none of your keys. {each.text}")
        else:
            say(each.sentence)
