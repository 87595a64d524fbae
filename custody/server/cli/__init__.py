"""``custody``: serve the platform, print its OpenAPI document, set people up, check the audit log.

A module of commands imports the server where a command needs it: words about a command come at once.
"""

import click

from custody.server.cli import admin, asset_tokens, auditing, jobs, onboarding, serving, sign_in, status


def _say_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from custody._version import __version__

        click.echo(f"custody {__version__}")
        context.exit()


@click.group(context_settings={"show_default": True})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_say_version)
def app() -> None:
    """Serve the platform, print its OpenAPI document, set people up, check the audit log."""


for command in (
    serving.serve_command,
    serving.worker_command,
    serving.openapi_command,
    serving.mine_command,
    serving.fund_command,
    status.status_command,
    admin.admin,
    auditing.audit,
    asset_tokens.token,
):
    app.add_command(command)
for command in (
    onboarding.requests_command,
    onboarding.approve_command,
    onboarding.reject_command,
    sign_in.reset_two_factor_command,
    sign_in.rotate_secret_command,
    jobs.jobs_command,
):
    admin.admin.add_command(command)


def main() -> None:
    app()
