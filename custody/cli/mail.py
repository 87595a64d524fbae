"""``custody mail``: whether the account gets a mail when something waits for it."""

import click

from custody.cli.common import json_option
from custody.cli.desk import Desk, pass_desk
from custody.terminal import answer, say


@click.command("mail")
@pass_desk
@click.option("--waiting/--no-waiting", default=None, help="A mail when something waits for you.")
@click.option("--amounts/--no-amounts", default=None, help="With amounts and addresses in it.")
@json_option
def mail_command(desk: Desk, waiting: bool | None, amounts: bool | None, as_json: bool) -> None:
    """Show what you are mailed when something waits for you, or change it."""
    from custody.schemas.mail import UpdateMailSettingsRequest

    with desk.client() as client:
        if waiting is None and amounts is None:
            found = client.mail_settings()
        else:
            found = client.update_mail_settings(UpdateMailSettingsRequest(waiting=waiting, amounts=amounts))
    if as_json:
        answer(found)
    elif not found.waiting:
        say("You get no mail when something waits for you.")
    else:
        how = "with amounts and addresses" if found.amounts else "without amounts and addresses"
        say(f"You get a mail when something waits for you, {how}.")
