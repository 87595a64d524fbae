"""``custody``: serve the platform, print its OpenAPI document, set people up, check the audit log."""

from typing import Annotated

import typer

from custody.server.cli import admin, auditing, onboarding, serving, sign_in

app = typer.Typer(no_args_is_help=True, help=__doc__, pretty_exceptions_enable=False)
app.add_typer(serving.app)
admin.app.add_typer(onboarding.app)
admin.app.add_typer(sign_in.app)
app.add_typer(admin.app, name="admin")
app.add_typer(auditing.app, name="audit")


def _version(*, wanted: bool) -> None:
    if wanted:
        # Imported where it is asked for, as signerd does.
        from multisig._version import __version__

        typer.echo(f"custody {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=lambda wanted: _version(wanted=wanted))
    ] = False,
) -> None: ...


def main() -> None:
    app()
