"""The program ``custody``: its commands, what its codes mean, and its exit status."""

import sys
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import click

from custody._version import __version__
from custody.cli import (
    account,
    changes,
    histories,
    limits,
    members,
    payments,
    proposals,
    service_accounts,
    vaults,
)
from custody.cli.common import fail, give, json_option, own_answers
from custody.cli.desk import ClientDesk, CommandDependencies
from custody.common.terminal import Exit, tell

EPILOGUE = "Exit status: " + ", ".join(
    f"{status.value} {status.name.lower().replace('_', ' ')}"
    for status in Exit
    if status not in {Exit.DEVICE, Exit.NOT_SIGNED}
)
# Imported by name when needed: the commands that call the API do not load the server.
OPERATORS = "custody.server.cli"


class WithOperators(click.Group):
    """A group whose commands include those of the operators' group of the same name."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name) or self._operators().get_command(ctx, cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self._operators().list_commands(ctx)})

    def _operators(self) -> click.Group:
        operators: click.Group = import_module(OPERATORS).app
        same = operators.commands.get(self.name or "")
        return same if isinstance(same, click.Group) else operators


@click.group(cls=WithOperators, epilog=EPILOGUE, context_settings={"show_default": True})
@click.option(
    "--session",
    type=click.Path(path_type=Path),
    envvar="CUSTODY_SESSION",
    metavar="DIR",
    help="The folder of the sign-in, for those who use the platform; default: the desktop's own.",
)
@click.version_option(__version__, prog_name="custody", message="%(prog)s %(version)s")
@click.pass_context
def app(context: click.Context, session: Path | None) -> None:
    """Spend from an organisation's vaults, and run the platform that keeps them."""
    outside = context.obj if isinstance(context.obj, CommandDependencies) else CommandDependencies()
    context.obj = ClientDesk(None if session is None else session.absolute(), own_answers(), outside)


@click.command("explain")
@click.argument("code")
@json_option
def explain_command(code: str) -> None:
    """Explain an error code of the platform: what it means, what to do, and who can do it."""
    from custody.schemas.errors import ErrorCode

    known = ErrorCode.__members__.get(code.upper())
    if known is None:
        near = get_close_matches(code.upper(), ErrorCode, n=3)
        hint = (
            f"Did you mean {' or '.join(near)}?"
            if near
            else "signerd explain knows those of a signer's desk."
        )
        fail(f"the platform has no code '{code}'", hint, Exit.USAGE)
    give(
        {"code": known.value, "meaning": known.meaning, "advice": known.advice, "who": known.who},
        known.value,
        f"  {known.meaning}",
        f"  {known.advice}",
        f"  Who can: {known.who}.",
    )


@app.group("audit", cls=WithOperators)
def audit() -> None:
    """The audit log: of a workspace for its members, of the whole platform for its operator."""


audit.add_command(histories.tail_command)
for command in (
    account.login_command,
    account.logout_command,
    account.whoami_command,
    vaults.vault,
    payments.propose_command,
    payments.max_send_command,
    proposals.proof,
    proposals.proposals_command,
    proposals.proposal,
    proposals.approve_status_command,
    members.member,
    limits.limit,
    changes.change,
    service_accounts.service_account,
    account.mail_command,
    explain_command,
):
    app.add_command(command)


def program() -> NoReturn:
    """Run with the process's arguments, and exit."""
    try:
        status = app.main(prog_name="custody", standalone_mode=False)
    except click.Abort:
        # Ctrl-C, or the end of the input at a question.
        sys.exit(Exit.INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("custody"):
            raise
        hint = "Install it: pipx install 'signerd[desktop,server]'. The page 'Operating the platform' helps."
        sentence = f"the platform's server is not installed here ({error.name} is missing)"
        sys.exit(tell("custody", "not-installed", sentence, hint, Exit.FAILED, as_json="--json" in sys.argv))
    sys.exit(status if isinstance(status, int) else Exit.OK)
