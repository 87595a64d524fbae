"""``custody serve``, ``worker``, ``openapi``, and ``chain``: the embedded chain's ``mine`` and ``fund``."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import click

from custody.cli.common import Amount, fail, give, json_option
from custody.common.terminal import Exit, put, say
from custody.server.cli.common import platform_at, refusals, state_option, warn_aside

if TYPE_CHECKING:
    from custody.server.app import Platform
    from custody.server.background import Background
    from custody.server.web.listen import ListenAddress


_EMBEDDED = "The embedded chain lives in the one process that answers requests and does the jobs."
_SEVERAL = (
    "Run custody serve alone; or name a node, so that several processes can share it: "
    "see the page 'Several processes' of the documentation."
)

metrics_option = click.option(
    "--metrics",
    help="A loopback address and port for GET /metrics, like 127.0.0.1:9464; port 0 takes a free one.",
)
port_file_option = click.option(
    "--port-file", type=click.Path(path_type=Path), help="Where to write the port once requests are answered."
)


@click.command("serve")
@state_option
@click.option("--listen", default="127.0.0.1:8080", help="Address and port; port 0 takes a free one.")
@port_file_option
@click.option(
    "--behind-proxy", "behind_proxy", is_flag=True, help="A TLS proxy on this machine stands in front."
)
@click.option(
    "--workers/--no-workers",
    "workers",
    default=True,
    help="Whether this process does the platform's jobs, too.",
)
@metrics_option
def serve_command(
    state: Path, listen: str, port_file: Path | None, behind_proxy: bool, workers: bool, metrics: str | None
) -> None:
    """Serve the platform until SIGINT or SIGTERM."""
    from custody.server.web.listen import ListenAddress, bind, serve

    with _process("serve", state, metrics, works=workers) as platform:
        background = platform.background

        def stop() -> None:
            platform.services.tools.changes.close()
            background.stop_taking()

        listener = bind(ListenAddress.parse(listen), behind_proxy=behind_proxy)
        platform.asgi.state.behind_proxy = behind_proxy
        serve(
            platform.asgi,
            listener,
            behind_proxy=behind_proxy,
            on_ready=partial(_announce, "Serving on", port_file),
            on_stop=stop,
            is_over=lambda: background.is_outdated,
        )


@click.command("worker")
@state_option
@click.option(
    "--health", help="A loopback address and port for GET /health and /ready; port 0 takes a free one."
)
@port_file_option
@metrics_option
def worker_command(state: Path, health: str | None, port_file: Path | None, metrics: str | None) -> None:
    """Do the platform's jobs, without answering requests, until SIGINT or SIGTERM."""
    with _process("worker", state, metrics, works=True) as platform:
        background = platform.background
        if health is None:
            _work(background)
            return
        from custody.server.web.asgi import build_worker_asgi
        from custody.server.web.listen import ListenAddress, bind, serve

        serve(
            build_worker_asgi(platform.services, background.lifespan),
            bind(ListenAddress.parse(health), behind_proxy=False),
            behind_proxy=False,
            on_ready=partial(_announce, "Working, in sight on", port_file),
            on_stop=background.stop_taking,
            is_over=lambda: background.is_outdated,
        )


@contextmanager
def _process(command: str, state: Path, metrics: str | None, *, works: bool) -> "Iterator[Platform]":
    """The platform of a process that answers requests (``serve``) or does jobs, with its log and its metrics.
    Raises CannotListen.
    """
    from custody.common.interpreter import NEWEST_OF_ENGINE, install_line
    from custody.server.cli.logs import begin_log, log, log_start
    from custody.server.settings import Settings
    from custody.server.web.listen import CannotListen, ListenAddress, only_server, serving_metrics

    if find_spec("pbk") is None:
        fail(
            "The engine that validates transactions, py-bitcoinkernel, is not installed: it has wheels for "
            f"Python 3.11 to {NEWEST_OF_ENGINE}.",
            f"Run: {install_line('custody', NEWEST_OF_ENGINE)}",
            Exit.STATE,
        )
    with refusals():
        settings = Settings(state=state)
        begin_log(settings.log_level)
        log_start(command, settings)
    with platform_at(state, with_workers=works) as platform:
        background = platform.background
        if background.has_embedded_chain and not (works and command == "serve"):
            raise CannotListen(_EMBEDDED, _SEVERAL)
        with ExitStack() as beside:
            if background.has_embedded_chain:
                beside.enter_context(only_server(state))
            if metrics is not None:
                meters = platform.services.store.meters
                meters.watch_process()
                serving = serving_metrics(ListenAddress.parse(metrics), meters.registry)
                say(f"Metrics on {beside.enter_context(serving).url}/metrics")
            yield platform
        if background.is_outdated:
            fail("A newer version of the platform has migrated the database.", "Start that version.")
    log.info("stopped", command=command)


def _announce(words: str, port_file: Path | None, address: "ListenAddress") -> None:
    from custody.server.web.listen import write_port_file

    if port_file is not None:
        write_port_file(port_file, address)
    say(f"{words} {address.url}")


def _work(background: "Background") -> None:
    from custody.common.interpreter import settle
    from custody.server.web.listen import first_signal

    stopped = Event()
    with first_signal(stopped.set), background.running():
        settle()
        say("Working")
        while not (stopped.wait(1) or background.is_outdated):
            pass


@click.command("openapi")
def openapi_command() -> None:
    """Print the OpenAPI document."""
    # A temporary database, whatever the environment names: printing must not migrate the real one.
    warn_aside()
    with tempfile.TemporaryDirectory() as folder, platform_at(Path(folder), database_url=None) as platform:
        put(json.dumps(platform.asgi.openapi(), indent=2))


@click.group()
def chain() -> None:
    """Mine and pay on the embedded chain."""


@chain.command("mine")
@click.argument("count", type=click.IntRange(min=1), help="How many blocks.")
@state_option
@json_option
def mine_command(count: int, state: Path) -> None:
    """Mine blocks on the embedded chain of the server that runs on this state folder."""
    mined = _ask_chain(state, {"mine": count})
    give(mined, f"Block {mined['height']}: {mined['block_hash']}")


@chain.command("fund")
@click.argument("address", help="An address on the embedded chain.")
@click.argument("sats", metavar="AMOUNT", type=Amount(), help="With its unit, like 0.5BTC or 25000sats.")
@state_option
@json_option
def fund_command(address: str, sats: int, state: Path) -> None:
    """Pay from the embedded chain's own coins. The payment waits for the next block: custody chain mine 1."""
    paid = _ask_chain(state, {"fund": address, "sats": sats})
    give(paid, paid["txid"])


def _ask_chain(state: Path, question: dict[str, Any]) -> dict[str, Any]:
    from custody.server.mining import MiningRefused, NotServed, ask

    try:
        # Settings.chain_folder, without loading the settings.
        return ask(state / "chain", question)
    except MiningRefused as error:
        fail(str(error), "Correct it and run the command again.", Exit.USAGE)
    except NotServed:
        fail(
            f"No server with an embedded chain is running on {state}.",
            "Start custody serve on it; a chain with a node of its own is not ours to mine.",
            Exit.NOT_RUNNING,
        )
    except OSError as error:
        fail(
            f"{state} cannot be used: {error.strerror}.",
            "Check its name, and that you are the user who runs the server.",
            Exit.STATE,
        )
