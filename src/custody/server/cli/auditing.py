"""``custody audit``: the audit log."""

import typer

from custody.server.cli.common import State, platform_at
from custody.server.service import audit

app = typer.Typer(no_args_is_help=True, help="The audit log.")


@app.command("verify")
def verify_command(state: State) -> None:
    """Checks every hash chain; names the first bad row of each broken one and exits with 1."""
    with platform_at(state) as platform:
        faults = audit.verify(platform.services.store)
    for fault in faults:
        typer.echo(f"{fault.chain_id}, row {fault.position}: {fault.sentence}", err=True)
    if faults:
        raise typer.Exit(1)
    typer.echo("Every audit chain is whole.")
