"""``custody explain``: what a code of the platform means."""

from difflib import get_close_matches

import click

from custody.cli.common import fail, json_option
from custody.common.terminal import Exit, answer, say


@click.command("explain")
@click.argument("code")
@json_option
def explain_command(code: str, as_json: bool) -> None:
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
    if as_json:
        answer({"code": found.value, "meaning": found.meaning, "advice": found.advice, "who": found.who})
        return
    say(found.value)
    say(f"  {found.meaning}")
    say(f"  {found.advice}")
    say(f"  Who can: {found.who}.")
