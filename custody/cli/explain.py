"""``custody explain``: what a code of the platform means."""

from difflib import get_close_matches

import click

from custody.cli.common import fail, give, json_option
from custody.common.terminal import Exit


@click.command("explain")
@click.argument("code")
@json_option
def explain_command(code: str) -> None:
    """Explain an error code of the platform: what it means, what to do, and who can do it."""
    from custody.schemas.errors import ErrorCode

    found = ErrorCode.__members__.get(code.upper())
    if found is None:
        near = get_close_matches(code.upper(), ErrorCode, n=3)
        hint = (
            f"Did you mean {' or '.join(near)}?"
            if near
            else "signerd explain knows those of a signer's desk."
        )
        fail(f"the platform has no code '{code}'", hint, Exit.USAGE)
    give(
        {"code": found.value, "meaning": found.meaning, "advice": found.advice, "who": found.who},
        found.value,
        f"  {found.meaning}",
        f"  {found.advice}",
        f"  Who can: {found.who}.",
    )
