"""The operators' commands: serve the platform, set up organisations and accounts, check the audit log.
Modules of commands import the server inside the commands, so that ``--help`` is fast.
"""

import click

from custody.common.commands import CommandsOfModules

MODULES = {
    "serving": ("serve", "worker", "openapi", "chain"),
    # It adds its own commands to the administration's.
    "status": ("status", "admin"),
    "auditing": ("audit",),
    "asset_tokens": ("token",),
    "proofs": ("proof",),
}


@click.group(
    cls=CommandsOfModules,
    package="custody.server.cli",
    modules=MODULES,
    context_settings={"show_default": True},
)
def app() -> None:
    """Serve the platform, print its OpenAPI document, set up accounts, check the audit log."""
