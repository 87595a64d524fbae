"""``custody``: serve the platform, print its OpenAPI document, set people up, check the audit log.

A module of commands imports the server where a command needs it: words about a command come at once.
"""

from typing import Annotated

import typer

from custody.server.cli import admin, asset_tokens, auditing, jobs, onboarding, serving, sign_in, status

app = typer.Typer(
    no_args_is_help=True,
    help="Serve the platform, print its OpenAPI document, set people up, check the audit log.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(serving.app)
app.add_typer(status.app)
admin.app.add_typer(onboarding.app)
admin.app.add_typer(sign_in.app)
admin.app.add_typer(jobs.app, name="jobs")
app.add_typer(admin.app, name="admin")
app.add_typer(auditing.app, name="audit")
app.add_typer(asset_tokens.app, name="token")


def _version(*, wanted: bool) -> None:
    if wanted:
        from multisig._version import __version__

        typer.echo(f"custody {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=lambda wanted: _version(wanted=wanted))
    ] = False,
) -> None:
    """Takes the program's own options."""


def main() -> None:
    app()
