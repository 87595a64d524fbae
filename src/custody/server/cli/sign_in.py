"""``custody admin reset-two-factor`` and ``rotate-secret``: what only an operator may do about signing in."""

from typing import Annotated

import typer

from custody.server.cli.common import State, platform_at, refusals
from custody.server.service.secrets import Purpose

app = typer.Typer()


@app.command("reset-two-factor")
def reset_two_factor_command(
    email: Annotated[str, typer.Argument(help="The person's e-mail address.")], state: State
) -> None:
    """Sets an account back to mailed codes, where its owner lost authenticator and recovery codes.

    Make sure that it is the owner who asks: from then on the mailbox and the password open the account.
    """
    address = email.strip().lower()
    with refusals(), platform_at(state) as platform:
        platform.services.account.two_factor.reset(address)
    typer.echo(
        f"{address} signs in with mailed codes now; the authenticator and its recovery codes are forgotten."
    )


@app.command("rotate-secret")
def rotate_secret_command(
    purpose: Annotated[Purpose, typer.Argument(help="What the secret is for.")],
    state: State,
    drop_old: Annotated[
        bool,
        typer.Option("--drop-old", help="Forget the old ones now: nothing made with them is read any more."),
    ] = False,
) -> None:
    """Makes a new secret of the platform's own, while servers run.

    Older ones go on reading what was made with them. Authenticators' secrets are encrypted anew at once, and their old
    secret is dropped. Interrupted, it is safe to run again.
    """
    with refusals(), platform_at(state) as platform:
        done = platform.services.account.rotation.rotate(purpose, drop_old=drop_old)
    sealed = f" {done.sealed_anew} accounts were encrypted anew." if purpose is Purpose.TOTP else ""
    typer.echo(
        f"A new {purpose} secret is in use.{sealed} Old ones dropped: {done.dropped}, still read: {done.still_read}."
    )
