"""``custody login``, ``logout``, ``whoami`` and ``mail``: one's own account."""

from pathlib import Path

import click

from custody.cli.access import workspaces
from custody.cli.common import fail, give, json_option, wants_json
from custody.cli.desk import ClientDesk, is_program, is_service, pass_desk
from custody.cli.stored_session import ClientSettings, read_settings
from custody.common.terminal import EMAIL, Exit, answer, say, table
from custody.common.text import day_words


@click.command("login")
@pass_desk
@click.option("--platform", metavar="URL", help="The platform; once signed in, it is remembered.")
@click.option(
    "--ca-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="With --platform: a private authority's certificate (PEM).",
)
@click.option(
    "--secrets",
    type=click.Choice(("keyring", "file")),
    help="Where the session is kept; the keyring where not given.",
)
@json_option
def login_command(desk: ClientDesk, platform: str | None, ca_file: Path | None, secrets: str | None) -> None:
    """Sign in to the platform.

    Asks for the e-mail address, the password and, where the platform wants one, the one-time code; first, for
    a session that is kept in a file, for a passphrase that encrypts it. They are typed, or read from standard
    input one a line.
    """
    known = read_settings(desk.folder) or ClientSettings(platform="", email="")
    url, store = platform or known.platform, secrets or known.store
    if not url:
        fail("no platform is named", "Run custody login --platform URL.", Exit.USAGE)
    if platform is None and known.ca_file is not None:
        ca_file = ca_file or Path(known.ca_file)
    desk.require_store(store)
    email = desk.answers.line(EMAIL).strip()
    kept = desk.sign_in(url, ca_file, store, email)
    done = {"email": email, "platform": url, "secrets": kept}
    give(done, f"Signed in as {email}. The session is kept in: {kept}.")


@click.command("logout")
@pass_desk
@json_option
def logout_command(desk: ClientDesk) -> None:
    """Sign out, here and at the platform."""
    was_signed_in = desk.sign_out()
    give({"signed_in": False}, "Signed out." if was_signed_in else "You were not signed in here.")


@click.command("whoami")
@pass_desk
@json_option
def whoami_command(desk: ClientDesk) -> None:
    """The account, its workspaces and its roles; the first workspace is the one that is meant by default."""
    with desk.client() as client:
        url = client.core.base_url
        if is_program():
            own = client.own_service_account()
            give(
                {"service_account": own, "platform": url, "service": True},
                f"Service account {own.service_account_id} ({own.name}) of {own.made_by_name} at {url}",
                f"In workspace {own.workspace_id} it may {', '.join(own.rights)}, "
                f"until {day_words(own.expires_at)}.",
            )
            return
        user, known = client.user_info(), workspaces(client)
    service = is_service()
    if wants_json():
        shown = {"user_id": user.uuid, "email": user.email, "platform": url, "workspaces": known}
        answer({**shown, "service": service})
        return
    say(f"{user.email} (user {user.uuid}) at {url}{', as a service' if service else ''}")
    rows = [(str(p.workspace_id), p.name, p.organisation, p.chain, p.role) for p in known]
    if rows:
        table(("ID", "WORKSPACE", "ORGANISATION", "NETWORK", "ROLE"), rows)
    else:
        say("The account is in no workspace.")


@click.command("mail")
@pass_desk
@click.option("--waiting/--no-waiting", default=None, help="A mail when something waits for you.")
@click.option("--amounts/--no-amounts", default=None, help="With amounts and addresses in it.")
@json_option
def mail_command(desk: ClientDesk, waiting: bool | None, amounts: bool | None) -> None:
    """Show what you are mailed when something waits for you, or change it."""
    from custody.schemas.users import UpdateMailSettingsRequest

    with desk.client() as client:
        if waiting is None and amounts is None:
            settings = client.mail_settings()
        else:
            settings = client.update_mail_settings(
                UpdateMailSettingsRequest(waiting=waiting, amounts=amounts)
            )
    how = "with amounts and addresses" if settings.amounts else "without amounts and addresses"
    mail = (
        f"a mail when something waits for you, {how}"
        if settings.waiting
        else "no mail when something waits for you"
    )
    give(settings, f"You get {mail}.")
