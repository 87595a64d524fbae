"""``custody``: serve the platform, print its OpenAPI document, set people up, check the audit log."""

import typer

from custody.server.cli import admin, auditing, onboarding, serving, sign_in

app = typer.Typer(no_args_is_help=True, help=__doc__, pretty_exceptions_enable=False)
app.add_typer(serving.app)
admin.app.add_typer(onboarding.app)
admin.app.add_typer(sign_in.app)
app.add_typer(admin.app, name="admin")
app.add_typer(auditing.app, name="audit")


def main() -> None:
    app()
