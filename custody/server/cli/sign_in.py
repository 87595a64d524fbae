"""``custody admin reset-two-factor`` and ``rotate-secret``."""

from pathlib import Path

import click

from custody.cli.common import json_option
from custody.server.cli.common import platform_at, refusals, state_option
from custody.terminal import answer, say
from custody.text import count

# A copy of `custody.server.service.secrets.Purpose`, so that help does not load it; a test compares them.
PURPOSES = ("totp", "purchase-webhook", "checkpoint", "webhook", "identity-provider")


@click.command("reset-two-factor")
@click.argument("email", help="The person's e-mail address.")
@state_option
@json_option
def reset_two_factor_command(email: str, state: Path, as_json: bool) -> None:
    """Set an account back to mailed codes after its owner lost the authenticator and the recovery codes.
    Make sure that it is the owner who asks: afterwards the mailbox and the password open the account.
    """
    address = email.strip().lower()
    with refusals(), platform_at(state) as platform:
        platform.services.account.two_factor.reset(address)
    if as_json:
        answer({"email": address, "method": "email"})
        return
    say(f"{address} signs in with mailed codes now; the authenticator and its recovery codes are forgotten.")


@click.command("rotate-secret")
@click.argument("purpose", type=click.Choice(PURPOSES), help="What the secret is for.")
@state_option
@click.option(
    "--finish",
    "finish",
    is_flag=True,
    help="Make no new one: forget the older ones, which are no longer used.",
)
@json_option
def rotate_secret_command(purpose: str, state: Path, finish: bool, as_json: bool) -> None:
    """Make a new secret of the platform's own, while servers run.
    Older ones still read what was made with them, until --finish. Secrets of authenticators, webhooks and
    identity providers are re-encrypted at once, and the old one is dropped. It is safe to run again after an
    interruption.
    """
    from custody.server.service.secrets import Purpose

    secret = Purpose(purpose)
    with refusals(), platform_at(state) as platform:
        rotation = platform.services.account.rotation
        done = rotation.finish(secret) if finish else rotation.rotate(secret)
    if as_json:
        answer(done)
        return
    sealed_of = {
        Purpose.TOTP: ("account was", "accounts were"),
        Purpose.WEBHOOK: ("webhook was", "webhooks were"),
        Purpose.IDENTITY_PROVIDER: ("identity provider was", "identity providers were"),
    }
    what = sealed_of.get(secret)
    sealed = f" {count(done.reencrypted, *what)} encrypted anew." if what else ""
    said = "No new" if finish else "A new"
    say(f"{said} {purpose} secret.{sealed} Old ones dropped: {done.dropped}, still read: {done.still_read}.")
