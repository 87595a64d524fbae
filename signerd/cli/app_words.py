"""A request to be paired, and a paired app, as the command line shows them."""

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from signerd.shapes import AppView, OpenPairing

PROGRAM = "a program of this machine"


def pairing_text(asked: "OpenPairing", rights: Collection[str], days: int) -> str:
    """Without its code: the person types what the app shows, so that a wrong app cannot be waved through."""
    from signerd.callers import rights_words

    taken = [right for right in asked.rights if right not in rights]
    lines = [
        "An app asks to be paired.",
        f"  Name   {asked.name}  (its own word)",
        f"  From   {asked.origin or PROGRAM}",
        *([f"  NOTE   {asked.warning}"] if asked.warning else []),
        f"  For {days} days it may",
        *(f"    {line}" for line in rights_words(rights)),
        *([f"  Not granted: {', '.join(taken)}"] if taken else []),
        f"  {asked.seconds_left} seconds are left to answer. Where you began no pairing yourself, refuse it.",
    ]
    return "\n".join(lines)


def app_row(app: "AppView") -> tuple[str, ...]:
    return (
        app.id,
        app.name,
        app.origin or PROGRAM,
        ", ".join(app.rights),
        app.expires,
        app.last_used or "never",
        app.state,
    )
