"""The operators' commands: serve the platform, set up organisations and accounts, check the audit log.
Modules of commands import the server inside the commands, so that ``--help`` is fast.
"""

import click

from custody.server.cli import admin, asset_tokens, auditing, proofs, serving, status


@click.group(context_settings={"show_default": True})
def app() -> None:
    """Serve the platform, print its OpenAPI document, set up accounts, check the audit log."""


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
    proofs.verify_proof_command,
):
    app.add_command(command)
