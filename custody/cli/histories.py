"""``custody vault history``, ``coins`` and ``tokens``: a vault's movements, its unspent coins and its token
movements; each also as a CSV file for a spreadsheet.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from custody.cli.common import Amount, fail, json_option
from custody.cli.desk import Desk, pass_desk
from custody.cli.meant import place_of, workspace_option
from custody.cli.vaults import vault_of
from custody.private_files import PRIVATE_FILE
from custody.spreadsheets import (
    COIN_COLUMNS,
    MOVEMENT_COLUMNS,
    TOKEN_COLUMNS,
    btc,
    coin_cells,
    csv_lines,
    movement_cells,
    token_cells,
)
from custody.terminal import Exit, answer, say, table
from custody.text import count

if TYPE_CHECKING:
    from custody.client import Client
    from custody.schemas.asset_tokens import TokenHistory, TokenMovement
    from custody.schemas.history import VaultCoin, VaultCoins, VaultHistory, VaultMovement

PageT = TypeVar("PageT", "VaultHistory", "VaultCoins", "TokenHistory")
# A copy of the values in `custody.schemas.history`, so that help loads no schema; a test compares them.
KINDS: Final = ("deposit", "forward", "payment", "consolidation", "token", "outside")
STATES: Final = ("spendable", "reserved", "unconfirmed", "immature")
PAGE: Final = 500
MOST_LINES: Final = 10_000
Time = click.DateTime(("%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ"))
csv_option = click.option(
    "--csv", "file", type=click.Path(path_type=Path, dir_okay=False), help="Write all of it to this file."
)
lines_option = click.option(
    "--lines", "-n", "count", default=50, type=click.IntRange(1, MOST_LINES), help="How many to show."
)
least_option = click.option("--min", "least", type=Amount(), help="Of at least so much, like 0.1BTC.")
most_option = click.option("--max", "most", type=Amount(), help="Of so much at most.")


@click.command("history")
@pass_desk
@click.argument("given", metavar="VAULT")
@click.option("--from", "since", type=Time, help="From this day or time on, in UTC: 2026-05-01.")
@click.option("--to", "until", type=Time, help="Before this day or time.")
@click.option("--kind", type=click.Choice(KINDS), help="Only those.")
@click.option("--status", type=click.Choice(("confirmed", "pending")), help="Only those.")
@least_option
@most_option
@click.option("--address", help="What paid this address.")
@click.option("--label", help="Part of a title, or of a name in the address book.")
@click.option("--txid", help="This transaction.")
@click.option(
    "--with-replaced", is_flag=True, default=None, help="With the vaults in whose place it is, as of one."
)
@lines_option
@csv_option
@workspace_option
@json_option
def history_command(
    desk: Desk,
    /,
    given: str,
    since: datetime | None,
    until: datetime | None,
    least: int | None,
    most: int | None,
    count: int,
    file: Path | None,
    workspace: str | None,
    as_json: bool,
    **filters: Any,
) -> None:
    """Show what happened to a vault, the newest first, with the balance after each movement."""
    filters |= {"from_time": _utc(since), "to_time": _utc(until), "min_sats": least, "max_sats": most}
    with desk.client() as client:
        place = _place(client, workspace, given)
        if file is not None:
            oldest = _movements(client, place, filters | {"order": "oldest"})
            _write(file, MOVEMENT_COLUMNS, map(movement_cells, oldest), as_json=as_json)
            return
        found = _first(count, _movements(client, place, filters))
    if as_json:
        answer(found)
    elif found:
        table(("WHEN", "KIND", "AMOUNT", "BALANCE", "FOR"), [_movement_row(one) for one in found])
    else:
        say("No movements.")


@click.command("coins")
@pass_desk
@click.argument("given", metavar="VAULT")
@click.option("--state", type=click.Choice(STATES), help="Only those.")
@least_option
@most_option
@click.option("--address", help="At this address.")
@lines_option
@csv_option
@workspace_option
@json_option
def coins_command(
    desk: Desk,
    /,
    given: str,
    least: int | None,
    most: int | None,
    count: int,
    file: Path | None,
    workspace: str | None,
    as_json: bool,
    **filters: Any,
) -> None:
    """Show the coins that a vault has not spent, the largest first, and what holds each."""
    filters |= {"min_sats": least, "max_sats": most}
    with desk.client() as client:
        place = _place(client, workspace, given)
        coins = _coins(client, place, filters)
        if file is not None:
            _write(file, COIN_COLUMNS, map(coin_cells, coins), as_json=as_json)
            return
        found = _first(count, coins)
    if as_json:
        answer(found)
    elif found:
        table(("STATE", "AMOUNT", "PROPOSAL", "COIN"), [_coin_row(one) for one in found])
    else:
        say("No coins.")


@click.command("tokens")
@pass_desk
@click.argument("given", metavar="VAULT")
@click.option("--contract", "contract_uid", type=click.IntRange(1), help="Of the token of this number alone.")
@lines_option
@csv_option
@workspace_option
@json_option
def tokens_command(
    desk: Desk,
    /,
    given: str,
    contract_uid: int | None,
    count: int,
    file: Path | None,
    workspace: str | None,
    as_json: bool,
) -> None:
    """Show what a vault received and gave of tokens, the newest first, with what it held after each."""
    filters = {"contract_uid": contract_uid}
    with desk.client() as client:
        place = _place(client, workspace, given)
        if file is not None:
            oldest = _token_movements(client, place, filters | {"order": "oldest"})
            _write(file, TOKEN_COLUMNS, map(token_cells, oldest), as_json=as_json)
            return
        found = _first(count, _token_movements(client, place, filters))
    if as_json:
        answer(found)
    elif found:
        table(("WHEN", "CALL", "AMOUNT", "HELD", "TOKEN"), [_token_row(one) for one in found])
    else:
        say("No movements of tokens.")


def _place(client: "Client", workspace: str | None, given: str) -> tuple[int, str]:
    """The ids of the workspace and of the vault. Raises Stop."""
    workspace_id = place_of(client, workspace).workspace_id
    return workspace_id, vault_of(client, workspace_id, given).id


def _movements(
    client: "Client", place: tuple[int, str], filters: dict[str, Any]
) -> "Iterator[VaultMovement]":
    return (one for page in _pages(client.vault_history, place, filters) for one in page.movements)


def _coins(client: "Client", place: tuple[int, str], filters: dict[str, Any]) -> "Iterator[VaultCoin]":
    return (one for page in _pages(client.vault_coins, place, filters) for one in page.coins)


def _token_movements(
    client: "Client", place: tuple[int, str], filters: dict[str, Any]
) -> "Iterator[TokenMovement]":
    return (one for page in _pages(client.token_history, place, filters) for one in page.movements)


def _pages(
    read: "Callable[..., PageT]", place: tuple[int, str], filters: dict[str, Any]
) -> "Iterator[PageT]":
    """Reads a page when the caller needs its rows."""
    cursor = None
    while True:
        page = read(*place, cursor=cursor, limit=PAGE, **filters)
        yield page
        if page.next_cursor is None:
            return
        if page.next_cursor == cursor:
            fail("the platform repeats the same page", "Report it to its operator.", Exit.PLATFORM)
        cursor = page.next_cursor


def _first(count: int, found: Iterable[Any]) -> list[Any]:
    return [one for one, _ in zip(found, range(count), strict=False)]


def _utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.replace(tzinfo=UTC)


def _write(file: Path, header: Sequence[str], rows: Iterable[Sequence[str]], *, as_json: bool) -> None:
    """Written whole or not at all, readable by its owner alone; one page at a time is in memory."""
    fresh = file.with_name(file.name + ".new")
    written = -1
    try:
        fresh.unlink(missing_ok=True)
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as lines:
                for line in csv_lines(header, rows):
                    lines.write(line)
                    written += 1
            fresh.replace(file)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
    except OSError as error:
        fail(f"{file} cannot be written: {error.strerror}", "Name another file with --csv.")
    if as_json:
        answer({"file": str(file), "rows": written})
    else:
        say(f"{count(written, 'row is', 'rows are')} in {file}.")


def _movement_row(one: "VaultMovement") -> tuple[str, ...]:
    balance = "pending" if one.balance_sats is None else f"{btc(one.balance_sats)} BTC"
    named = [output.label or output.address for output in one.outputs]
    paid = ", ".join(named) + (f" and {one.more_outputs} more" if one.more_outputs else "")
    return f"{one.at:%Y-%m-%d %H:%M}", one.kind, f"{btc(one.amount_sats)} BTC", balance, one.title or paid


def _coin_row(one: "VaultCoin") -> tuple[str, ...]:
    return one.state, f"{btc(one.amount_sats)} BTC", (one.psbt_id or "-")[:8], f"{one.txid}:{one.vout}"


def _token_row(one: "TokenMovement") -> tuple[str, ...]:
    return (
        f"{one.at:%Y-%m-%d %H:%M}",
        one.function,
        f"{one.amount} {one.ticker}",
        one.holding,
        f"{one.name} ({one.contract_uid})",
    )
