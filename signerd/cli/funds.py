"""receive, movements: the next address of a vault to be paid to; payments into and out of it."""

import sys
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from custody.common.terminal import answer, aside, moment_type, put, say
from custody.common.text import amount
from signerd.cli import naming
from signerd.cli.desk import Desk, answering
from signerd.cli.progress import accepting_other_address, reporting
from signerd.cli.vaults import vault_argument
from signerd.core.states import movement_words, network_words
from signerd.core.text import WHY_ELSEWHERE
from signerd.shapes.limits import MOST_MOVEMENTS

if TYPE_CHECKING:
    from signerd.client import DaemonClient
    from signerd.shapes import MovementView, VaultFunds, VaultMovements


@vault_argument
@click.option("--show", is_flag=True, help="Have your device show it, and compare the two.")
@answering
def receive(desk: Desk, vault_id: str, show: bool) -> None:
    """The next address of a pinned vault to be paid to, derived on this machine; in a terminal as a QR code,
    too.

    Have your device show it before you give it to anyone.
    """
    whose = naming.vault_id(desk.daemon, vault_id)
    funds = desk.daemon.vault_funds(whose)
    if not desk.as_json:
        say(receive_text(funds))
        if sys.stdout.isatty():
            # Imported here: most commands do not draw codes.
            from firmware_bridge.airgap import PictureFormat, draw

            put(draw(funds.fresh.address, PictureFormat.TERMINAL).decode())
    if show:
        with reporting(desk, whose), accepting_other_address(desk):
            desk.daemon.show_vault_address(whose, index=funds.fresh.index, chain=funds.fresh.chain)
    if desk.as_json:
        answer(funds)
    elif show:
        say("Your device shows the same address.")


def receive_text(funds: "VaultFunds") -> str:
    fresh = funds.fresh
    lines = [network_words(funds.network)]
    if funds.confirmed_sats is not None:
        lines.append(f"  balance    {amount(funds.confirmed_sats)}, by the platform's word")
    if funds.unconfirmed_sats:
        lines.append(f"             {amount(funds.unconfirmed_sats)} unconfirmed")
    lines.append(f"  address    {fresh.on_screen}")
    if fresh.on_screen != fresh.address:
        lines.append(f"             {fresh.address} elsewhere: {WHY_ELSEWHERE}")
    lines.append(f"  it is      receive address {fresh.index:,}, not used yet")
    return "\n".join([*lines, *(f"! {why}" for why in (funds.fault, funds.note) if why)])


Day = moment_type("%Y-%m-%d")


@vault_argument
@click.option("--from", "since", type=Day, help="From this day on, in UTC: 2026-05-01.")
@click.option("--to", "before", type=Day, help="Before this day.")
@click.option("--search", metavar="TEXT", help="Part of a description, or of a name in the address book.")
@click.option("--lines", "-n", "count", default=50, type=click.IntRange(1, 10_000), help="How many to show.")
@answering
def movements(
    desk: Desk, vault_id: str, since: datetime | None, before: datetime | None, search: str | None, count: int
) -> None:
    """Show payments into and out of a vault, the newest first, with the balance after each.

    By the platform's word. The amount of a proposal that this machine knows is read from its transaction.
    """
    sought = {"since": _day(since), "before": _day(before), "search": search}
    rows: list[MovementView] = []
    left_out, network = 0, ""
    for page in _pages(desk.daemon, naming.vault_id(desk.daemon, vault_id), sought, count):
        rows, left_out, network = [*rows, *page.movements], left_out + page.left_out, page.network
        if len(rows) >= count:
            break
    desk.give(
        rows[:count],
        "\n".join([network_words(network), *map(movement_text, rows[:count])]) if rows else "No movements.",
    )
    if left_out:
        aside(f"Entries of the platform that cannot be read and are not shown: {left_out}.")


def _pages(
    daemon: "DaemonClient", vault_id: str, sought: dict[str, Any], count: int
) -> "Iterator[VaultMovements]":
    cursor: Any = None
    while True:
        page = daemon.vault_movements(vault_id, cursor=cursor, limit=min(count, MOST_MOVEMENTS), **sought)
        yield page
        if page.next in {None, cursor}:
            return
        cursor = page.next


def movement_text(one: "MovementView") -> str:
    gain = "+" if one.amount_sats > 0 else ""
    place = "unconfirmed" if one.height is None else f"block {one.height}"
    balance = "" if one.balance_sats is None else f", balance after {amount(one.balance_sats)}"
    lines = [
        f"{gain}{amount(one.amount_sats)}  {_what(one)}",
        f"  {one.at.replace('T', ' ').replace('Z', ' UTC')}, {place}{balance}",
        f"  transaction {one.txid}",
    ]
    if one.platform_names and one.psbt_id is None:
        names = ", ".join(f'"{name}"' for name in one.platform_names)
        lines.insert(1, f"  the platform says: to {names}")
    if one.memo:
        lines.insert(1, f'  the platform says: "{one.memo}"')
    return "\n".join(lines)


def _what(one: "MovementView") -> str:
    if one.psbt_id is not None:
        return f"{one.title}  [proposal {one.psbt_id}]"
    return movement_words(one.kind) + (f" to {', '.join(one.names)}" if one.names else "")


def _day(given: datetime | None) -> str | None:
    return None if given is None else f"{given:%Y-%m-%d}"
