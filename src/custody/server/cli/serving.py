"""``custody serve``, ``openapi``, and the embedded chain's ``mine`` and ``fund``."""

import json
import logging
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import structlog
import typer

from custody.server.chain.embedded.chain import MAX_BLOCKS_PER_CALL
from custody.server.cli.common import AsJson, State, platform_at, refusals
from custody.server.listen import Address, bind, only_server, serve, write_port_file

app = typer.Typer()


@app.command("serve")
def serve_command(
    state: State,
    listen: Annotated[
        str, typer.Option(help="Address and port; port 0 takes a free one.")
    ] = "127.0.0.1:8080",
    port_file: Annotated[
        Path | None, typer.Option(help="Where to write the port once requests are answered.")
    ] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A TLS proxy on this machine stands in front.")
    ] = False,
) -> None:
    """Serves the platform until it is told to stop (SIGINT or SIGTERM)."""
    _log_as_json()

    def announce(address: Address) -> None:
        if port_file is not None:
            write_port_file(port_file, address)
        typer.echo(f"Serving on {address.url}")

    with refusals(), platform_at(state, new=True) as platform, only_server(state):
        listener = bind(Address.parse(listen), behind_proxy=behind_proxy)
        serve(
            platform.asgi,
            listener,
            behind_proxy=behind_proxy,
            on_ready=announce,
            on_stop=platform.services.changes.close,
        )


@app.command("openapi")
def openapi_command() -> None:
    """Prints the OpenAPI document."""
    # A database of its own, whatever the environment names: printing must not migrate anything.
    with (
        tempfile.TemporaryDirectory() as folder,
        platform_at(Path(folder), new=True, database_url=None) as platform,
    ):
        typer.echo(json.dumps(platform.asgi.openapi(), indent=2))


@app.command("mine")
def mine_command(
    count: Annotated[int, typer.Argument(help="How many blocks.", min=1, max=MAX_BLOCKS_PER_CALL)],
    state: State,
    as_json: AsJson = False,
) -> None:
    """Mines blocks on the embedded chain of the server that runs on this state folder."""
    with refusals(), platform_at(state) as platform:
        answer = platform.operator.mine(count)
    typer.echo(json.dumps(answer) if as_json else f"Block {answer['height']}: {answer['block_hash']}")


@app.command("fund")
def fund_command(
    address: Annotated[str, typer.Argument(help="A regtest address.")],
    amount_btc: Annotated[str, typer.Argument(help="Like 0.5: bitcoin, with at most eight places.")],
    state: State,
    as_json: AsJson = False,
) -> None:
    """Pays from the embedded chain's own coins. The payment waits for the next block: custody mine 1."""
    with refusals(), platform_at(state) as platform:
        answer = platform.operator.fund(address, amount_btc)
    typer.echo(json.dumps(answer) if as_json else answer["txid"])


def _log_as_json() -> None:
    """One JSON object per line on the standard error."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
