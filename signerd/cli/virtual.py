"""device virtual, demo: virtual signing devices, for trying things out and for tests."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Signing devices.", no_args_is_help=True, rich_markup_mode=None)


class Family(StrEnum):
    TREZOR = "trezor"
    COLDCARD = "coldcard"
    LEDGER = "ledger"


class Decision(StrEnum):
    APPROVE = "approve"
    REFUSE = "refuse"


class TestNetwork(StrEnum):
    """Never mainnet: a virtual device keeps its seed on the machine that it is to guard against."""

    TESTNET4 = "testnet4"
    SIGNET = "signet"
    REGTEST = "regtest"


@app.callback()
def device() -> None:
    """Signing devices."""


@app.command()
def virtual(
    family: Annotated[Family, typer.Argument(help="Whose wire protocol it speaks.")],
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="host:port, or a socket's path (Coldcard); default: a free one."
        ),
    ] = None,
    seed_file: Annotated[
        Path | None, typer.Option(help="BIP-39 words; made if missing. Default: a new seed each time.")
    ] = None,
    auto: Annotated[Decision | None, typer.Option(help="Decide without a person.")] = None,
    network: Annotated[TestNetwork, typer.Option()] = TestNetwork.REGTEST,
    wallets_file: Annotated[
        Path | None, typer.Option(help="Coldcard: where enrolled vaults are kept.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Speak to a program, a JSON object a line.")
    ] = False,
) -> None:
    """Run a virtual device: its screen on standard output, its buttons on standard input.

    `python -m device_simulators` has more options: a PIN, a passphrase, another app.
    """
    from device_simulators.cli import Options, run
    from device_simulators.fleet import Settings
    from firmware_bridge import model
    from multisig import Network

    settings = Settings(network=Network(network.value), listen=listen, wallets_file=wallets_file)
    options = Options(settings, seed_file=seed_file, auto=None if auto is None else auto.value, json=as_json)
    raise typer.Exit(run(model.Family(family.value), options, sys.stdin, sys.stdout))


def demo(
    auto: Annotated[bool, typer.Option("--auto", help="Press every button without a person.")] = False,
) -> None:
    """Run the main job end to end on this machine: the platform, three signers, three virtual devices."""
    from signerd.demo import story

    raise typer.Exit(story.main(auto=auto))
