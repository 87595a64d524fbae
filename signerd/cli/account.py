"""login, logout: through the daemon where it runs, else directly on the held state folder."""

from typing import TYPE_CHECKING

import click

from custody.terminal import CODE, EMAIL, PASSWORD
from signerd.cli.desk import Desk, json_option, pass_desk
from signerd.cli.terminal import Answers, answer, say

if TYPE_CHECKING:
    from signerd.account.config import Config
    from signerd.shapes import SignedIn


# As multisig.Network has them, here so that the command line need not load it; a test compares them.
NETWORKS = ("mainnet", "testnet4", "signet", "regtest")
STORES = ("keyring", "file")


@pass_desk
@click.option("--platform", metavar="URL", help="The platform; written down the first time.")
@click.option("--network", default="mainnet", type=click.Choice(NETWORKS), help="With --platform.")
@click.option(
    "--device", multiple=True, metavar="ENDPOINT", help="With --platform: a device that is no USB device."
)
@click.option("--label", help="With --platform: the name of your device.")
@click.option(
    "--secrets",
    type=click.Choice(STORES),
    help="With --platform: where the session's secret is kept; the keyring where not given.",
)
@json_option
def login(
    desk: Desk,
    platform: str | None,
    network: str,
    device: tuple[str, ...],
    label: str | None,
    secrets: str | None,
    as_json: bool,
) -> None:
    """Sign in to the platform.

    Asks for the e-mail address, the password and, where the platform wants one, the one-time code; first for
    the passphrase of the secrets file where there is one. They are typed, or read from standard input one a
    line.
    """
    config, write = None, None
    if platform is not None:
        from signerd.cli.foreground import Setup, config_for

        config, write = config_for(desk.state, Setup(platform, network, device, label, secrets))
    if device:
        from signerd.account.config import find_config, load_config
        from signerd.cli.foreground import require_endpoints

        require_endpoints(config or load_config(find_config(desk.state)), desk.state, device)
    done = _through_daemon(desk) if desk.running() else _directly(desk, config)
    if write is not None:
        write()
    if as_json:
        answer(done)
    else:
        say(f"Signed in as {done.email}. The session is kept in: {done.secrets}.")


def _through_daemon(desk: Desk) -> "SignedIn":
    with desk.daemon() as daemon:
        done = daemon.sign_in(*_credentials(desk.answers))
        return daemon.confirm_sign_in(desk.answers.line(CODE)) if done.code_needed else done


def _credentials(answers: Answers) -> tuple[str, str]:
    return answers.line(EMAIL).strip(), answers.secret(PASSWORD)


def _directly(desk: Desk, config: "Config | None") -> "SignedIn":
    import asyncio

    from signerd.account.config import find_config, load_config
    from signerd.app import Outside, open_account, open_journal
    from signerd.cli.foreground import opened_store
    from signerd.core.audit import Note
    from signerd.journal.storage import StateFolder
    from signerd.shapes import SignedIn

    async def sign_in(config: "Config") -> SignedIn:
        async with open_account(config, store) as account:
            if not await account.login(*_credentials(desk.answers)):
                await account.confirm(desk.answers.line(CODE).strip())
            return SignedIn(email=account.email or "", code_needed=False, secrets=account.mode)

    with StateFolder.hold(desk.state):
        config = config or load_config(find_config(desk.state))
        store = opened_store(config, desk.state, desk.answers)
        # A sign-in that fails makes no journal: a backup can still be restored here.
        done = asyncio.run(sign_in(config))
        with open_journal(config, desk.state, Outside()) as journal:
            journal.note(Note("signed-in", done.email))
    return done


@pass_desk
@json_option
def logout(desk: Desk, as_json: bool) -> None:
    """Sign out, here and at the platform."""
    if desk.running():
        with desk.daemon() as daemon:
            daemon.sign_out()
    else:
        _leave(desk)
    if as_json:
        answer({"signed_in": False})
    else:
        say("Signed out.")


def _leave(desk: Desk) -> None:
    import asyncio

    from signerd.account.config import find_config, load_config
    from signerd.app import Outside, open_account, open_journal
    from signerd.cli.foreground import opened_store
    from signerd.core.audit import Note
    from signerd.journal.storage import StateFolder

    async def sign_out(config: "Config") -> None:
        async with open_account(config, store) as account:
            await account.restore()
            await account.logout()

    with StateFolder.hold(desk.state):
        config = load_config(find_config(desk.state))
        store = opened_store(config, desk.state, desk.answers)
        with open_journal(config, desk.state, Outside()) as journal:
            asyncio.run(sign_out(config))
            journal.note(Note("signed-out", "account"))
