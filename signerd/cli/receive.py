"""receive: the next address of a vault to be paid to."""

import sys
from typing import TYPE_CHECKING

import click

from signerd.cli import naming
from signerd.cli.desk import Desk, json_option, pass_desk
from signerd.cli.terminal import answer, aside, put, say
from signerd.cli.vaults import vault_argument
from signerd.core.states import network_words
from signerd.core.text import WHY_ELSEWHERE, amount

if TYPE_CHECKING:
    from signerd.shapes import VaultFunds


@pass_desk
@vault_argument
@click.option("--show", is_flag=True, help="Have your device show it, and compare the two.")
@json_option
def receive(desk: Desk, vault_id: str, show: bool, as_json: bool) -> None:
    """The next address of a pinned vault to be paid to, derived on this machine; in a terminal as a QR code,
    too.

    Have your device show it before you give it to anyone.
    """
    from signerd.cli.progress import accepting_other_address, reporting

    tell = aside if as_json else say
    with desk.daemon() as daemon:
        whose = naming.vault_id(daemon, vault_id)
        funds = daemon.vault_funds(whose)
        if not as_json:
            say(receive_text(funds))
            if sys.stdout.isatty():
                _draw(funds.fresh.address)
        if show:
            with reporting(daemon, whose, tell), accepting_other_address(desk.daemon, tell):
                daemon.show_vault_address(whose, index=funds.fresh.index, chain=funds.fresh.chain)
    if as_json:
        answer(funds)
    elif show:
        say("Your device shows the same address.")


def receive_text(funds: "VaultFunds") -> str:
    fresh = funds.fresh
    lines = [network_words(funds.network)]
    if funds.confirmed_sats is not None:
        lines.append(f"  balance    {amount(funds.confirmed_sats)}, by the platform's word")
    if funds.unconfirmed_sats:
        lines.append(f"             {amount(funds.unconfirmed_sats)} not confirmed yet")
    lines.append(f"  address    {fresh.on_screen}")
    if fresh.on_screen != fresh.address:
        lines.append(f"             {fresh.address} elsewhere: {WHY_ELSEWHERE}")
    lines.append(f"  it is      receive address {fresh.index:,}, not used yet")
    return "\n".join([*lines, *([f"! {funds.note}"] if funds.note else [])])


def _draw(address: str) -> None:
    # Imported here: most commands do not draw codes.
    from firmware_bridge.airgap import Picture, draw

    put(draw(address, Picture.TERMINAL).decode())
