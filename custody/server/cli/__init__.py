"""``custody``: serve the platform, print its OpenAPI document, set people up, check the audit log."""

import sys
from typing import Annotated

import structlog
import typer

from custody.server.cli import admin, asset_tokens, auditing, jobs, onboarding, serving, sign_in, status

app = typer.Typer(no_args_is_help=True, help=__doc__, pretty_exceptions_enable=False)
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
        # Imported where it is asked for, as signerd does.
        from multisig._version import __version__

        typer.echo(f"custody {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[  # noqa: ARG001 - its callback has done all
        bool, typer.Option("--version", is_eager=True, callback=lambda wanted: _version(wanted=wanted))
    ] = False,
) -> None:
    # What is printed is the answer, and may be for a program: warnings go beside it.
    structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))


def main() -> None:
    app()
