"""The program ``custody``: its commands, what its codes mean, and its exit status."""

from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import click

from custody._version import __version__
from custody.cli.common import fail, give, json_option, own_answers
from custody.cli.desk import ClientDesk, CommandDependencies
from custody.common.commands import CommandsOfModules, run
from custody.common.terminal import Exit

EPILOGUE = "Exit status: " + ", ".join(
    f"{status.value} {status.name.lower().replace('_', ' ')}"
    for status in Exit
    if status not in {Exit.DEVICE, Exit.NOT_SIGNED}
)
# The commands that call the API do not load the server.
OPERATORS = "custody.server.cli"
MODULES = {
    "account": ("login", "logout", "whoami", "mail"),
    "changes": ("change",),
    # It and `histories` add their own commands to the vaults'.
    "labels": ("vault",),
    "limits": ("limit",),
    "members": ("member", "workspace"),
    "service_accounts": ("service-account",),
}


class WithOperators(CommandsOfModules):
    """A group whose commands include those of the operators' group of the same name."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name) or self._operators(ctx).get_command(ctx, cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self._operators(ctx).list_commands(ctx)})

    def _operators(self, ctx: click.Context) -> click.Group:
        operators: click.Group = import_module(OPERATORS).app
        same = operators.get_command(ctx, self.name or "")
        return same if isinstance(same, click.Group) else operators


@click.group(
    cls=WithOperators,
    package="custody.cli",
    modules=MODULES,
    epilog=EPILOGUE,
    context_settings={"show_default": True},
)
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
    """Propose payments from an organisation's vaults, and run the platform that keeps them."""
    outside = context.obj if isinstance(context.obj, CommandDependencies) else CommandDependencies()
    context.obj = ClientDesk(None if session is None else session.absolute(), own_answers(), outside)


@app.command("explain")
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


@app.group("audit", cls=WithOperators, package="custody.cli", modules={"histories": ("tail",)})
def audit() -> None:
    """The audit log: of a workspace for its members, of the whole platform for its operator."""


@app.group(
    cls=CommandsOfModules,
    package="custody.cli",
    modules={"payments": ("create", "max", "consolidate"), "proposals": ("list", "show", "bump", "cancel")},
)
def proposal() -> None:
    """Propose payments, and follow, bump or cancel those that are under way."""


@app.group(cls=WithOperators, package="custody.cli", modules={"proofs": ("make", "list", "show", "download")})
def proof() -> None:
    """Prove control of a vault's address and coins by a signed message (BIP-322). It moves nothing."""


def program() -> NoReturn:
    """Run with the process's arguments, and exit."""
    missing = "the platform's server is not installed here"
    hint = "Install it: pipx install 'signerd[desktop,server]'. The page 'Operating the platform' helps."
    run(app, "custody", ("custody",), missing, hint)
