"""``custody vault history``, ``statement``, ``coins`` and ``tokens``: a vault's movements, those of a closed
month, its unspent coins and its token movements; each also as a CSV file for a spreadsheet. ``custody audit
tail``: the end of a workspace's log.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from custody.cli.access import Access, in_workspace
from custody.cli.common import Amount, fail, give, give_list, wants_json, write_file
from custody.cli.members import id_of, of_person_and_days
from custody.cli.vaults import vault, vault_of
from custody.common import spreadsheets
from custody.common.terminal import Exit, moment_type
from custody.common.text import btc, count, minute

if TYPE_CHECKING:
    from datetime import datetime

    from custody.client import Client
    from custody.schemas.asset_tokens import TokenMovement
    from custody.schemas.history import VaultCoin, VaultMovement

# A copy of the values in `custody.schemas.history`, so that help loads no schema; a test compares them.
KINDS: Final = ("deposit", "forward", "payment", "consolidation", "token", "outside")
STATES: Final = ("spendable", "locked", "unconfirmed", "immature", "set-aside", "kept-for-tokens")
PAGE: Final = 500
MOST_ENTRIES: Final = 500
MOST_LINES: Final = 10_000
# What the log names by an id.
_NAMED: Final = re.compile(r"\b(?:vault|role|user|proposal|contract) [0-9a-f]+\b")
time_option = partial(
    click.option,
    type=moment_type("%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ"),
    callback=lambda _context, _option, moment: moment and moment.replace(tzinfo=UTC),
)
csv_option = click.option(
    "--csv", "file", type=click.Path(path_type=Path, dir_okay=False), help="Write all of it to this new file."
)
lines_option = click.option(
    "--lines", "-n", "count", default=50, type=click.IntRange(1, MOST_LINES), help="How many to show."
)
least_option = click.option("--min", "min_sats", type=Amount(), help="Of at least so much, like 0.1BTC.")
most_option = click.option("--max", "max_sats", type=Amount(), help="Of so much at most.")


def _movement_row(one: "VaultMovement") -> tuple[str, ...]:
    balance = "pending" if one.balance_sats is None else f"{btc(one.balance_sats)} BTC"
    named = [output.label or output.address for output in one.outputs]
    paid = ", ".join(named) + (f" and {one.more_outputs} more" if one.more_outputs else "")
    return minute(one.at), one.kind, f"{btc(one.amount_sats)} BTC", balance, one.title or paid


def _coin_row(one: "VaultCoin") -> tuple[str, ...]:
    aside = one.set_aside
    end = f" (until {minute(aside.until)})" if aside and aside.until else ""
    why = f"{aside.reason}{end}" if aside else ""
    coin = f"{one.txid}:{one.vout}"
    return one.state, f"{btc(one.amount_sats)} BTC", (one.psbt_id or "-")[:8], coin, why


def _token_row(one: "TokenMovement") -> tuple[str, ...]:
    return (
        minute(one.at),
        one.function,
        f"{one.amount} {one.ticker}",
        one.holding,
        f"{one.name} ({one.contract_uid})",
    )


@dataclass(frozen=True)
class _History:
    """How a vault's entries are read, shown and written. ``entries``: the field of a page that has them;
    ``oldest``: the filter for a file.
    """

    read: "Callable[[Client], Callable[..., Any]]"
    entries: str
    header: tuple[str, ...]
    row: Callable[[Any], tuple[str, ...]]
    empty: str
    columns: spreadsheets.Columns
    oldest: dict[str, str] = field(default_factory=lambda: {"order": "oldest"})


MOVEMENTS = _History(
    lambda client: client.vault_history,
    "movements",
    ("WHEN", "KIND", "AMOUNT", "BALANCE", "FOR"),
    _movement_row,
    "No movements.",
    spreadsheets.MOVEMENT_COLUMNS,
)
COINS = _History(
    lambda client: client.vault_coins,
    "coins",
    ("STATE", "AMOUNT", "PROPOSAL", "COIN", "SET ASIDE"),
    _coin_row,
    "No coins.",
    spreadsheets.COIN_COLUMNS,
    {},
)
TOKENS = _History(
    lambda client: client.token_history,
    "movements",
    ("WHEN", "CALL", "AMOUNT", "HELD", "TOKEN"),
    _token_row,
    "No movements of tokens.",
    spreadsheets.TOKEN_COLUMNS,
)


@vault.command("history")
@click.argument("given", metavar="VAULT")
@time_option("--from", "from_time", help="From this day or time on, in UTC: 2026-05-01.")
@time_option("--to", "to_time", help="Before this day or time.")
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
@in_workspace
def history_command(access: Access, /, given: str, count: int, file: Path | None, **filters: Any) -> None:
    """Show what happened to a vault, the newest first, with the balance after each movement."""
    _give(access, given, MOVEMENTS, filters, count, file)


@vault.command("statement")
@click.argument("given", metavar="VAULT")
@click.argument("month", type=moment_type("%Y-%m"), metavar="YYYY-MM")
@csv_option
@in_workspace
def statement_command(access: Access, /, given: str, month: "datetime", file: Path | None) -> None:
    """Show a closed month of a vault: the balance before it, its movements, the balance after it."""
    read, filters = access.client.vault_statement, {"month": f"{month:%Y-%m}"}
    where = {"workspace_id": access.workspace_id, "vault_id": vault_of(access, given).id}
    whole = read(**where, **filters, limit=1)
    movements = entries_of(access, read, whole.vault_id, "movements", filters)
    if file is not None:
        _write(file, spreadsheets.MOVEMENT_COLUMNS, spreadsheets.statement_lines(whole, movements))
    elif wants_json():
        give(whole.model_copy(update={"movements": list(movements), "next_cursor": None}))
    else:
        lines = list(spreadsheets.statement_lines(whole, movements))
        give_list(lines, MOVEMENTS.header, map(_movement_row, lines))


@vault.command("coins")
@click.argument("given", metavar="VAULT")
@click.option("--state", type=click.Choice(STATES), help="Only those.")
@least_option
@most_option
@click.option("--address", help="At this address.")
@lines_option
@csv_option
@in_workspace
def coins_command(access: Access, /, given: str, count: int, file: Path | None, **filters: Any) -> None:
    """Show the coins that a vault has not spent, the largest first, and what holds each."""
    _give(access, given, COINS, filters, count, file)


@vault.command("set-aside")
@click.argument("given", metavar="VAULT")
@click.argument("coin", metavar="TXID:N")
@click.option("--reason", required=True, help="Why, as the list of coins and the audit log have it.")
@time_option(
    "--until", help="Until this time, or the beginning of this day, in UTC. Without it: until it is released."
)
@in_workspace
def set_aside_command(access: Access, given: str, coin: str, **why: Any) -> None:
    """Set a coin aside: no new proposal spends it."""
    one = vault_of(access, given)
    done = access.make(access.client.set_coin_aside, vault_id=one.id, coin=coin, **why)
    give(done, f"No new proposal of the vault '{one.name}' spends {coin}.")


@vault.command("release")
@click.argument("given", metavar="VAULT")
@click.argument("coin", metavar="TXID:N")
@in_workspace
def release_command(access: Access, given: str, coin: str) -> None:
    """Release a coin that was set aside."""
    one = vault_of(access, given)
    done = access.make(access.client.release_coin, vault_id=one.id, coin=coin)
    give(done, f"The vault '{one.name}' may spend {coin} again.")


@vault.command("tokens")
@click.argument("given", metavar="VAULT")
@click.option("--contract", "contract_uid", type=click.IntRange(1), help="Of the token of this number alone.")
@lines_option
@csv_option
@in_workspace
def tokens_command(access: Access, /, given: str, count: int, file: Path | None, **filters: Any) -> None:
    """Show what a vault received and gave of tokens, the newest first, with what it held after each."""
    _give(access, given, TOKENS, filters, count, file)


@click.command("tail")
@click.option("--lines", "-n", "count", default=20, type=click.IntRange(1, MOST_ENTRIES), help="How many.")
@of_person_and_days
@in_workspace
def tail_command(access: Access, count: int, by: str | None, **days: str | None) -> None:
    """Show the end of the workspace's audit log."""
    where = {"org_uid": access.workspace.org_id, "workspace_uid": access.workspace_id}
    of = {"user_uuid": id_of(access, by), **days}
    page = access.client.logs(**where, **of, page_size=count, order="newest")
    entries = page.logs[::-1]
    named = {key: f"{key} ({name})" for key, name in page.names.items()}
    rows = [
        (
            f"{one.timestamp:%Y-%m-%d %H:%M:%S}",
            one.user_name,
            f"{one.category}.{one.action}".lower(),
            _NAMED.sub(lambda found: named.get(found[0], found[0]), one.description),
        )
        for one in entries
    ]
    give_list(entries, ("WHEN", "WHO", "WHAT", ""), rows)


def _give(
    access: Access, given: str, history: _History, filters: dict[str, Any], count: int, file: Path | None
) -> None:
    """Into ``file``, from the oldest on where it has an order; else the first ``count`` of them."""
    read, vault_id = history.read(access.client), vault_of(access, given).id
    if file is None:
        entries = list(islice(entries_of(access, read, vault_id, history.entries, filters), count))
        give_list(entries, history.header, map(history.row, entries), history.empty)
        return
    every = entries_of(access, read, vault_id, history.entries, filters | history.oldest)
    _write(file, history.columns, every)


def entries_of(
    access: Access, read: Callable[..., Any], vault_id: str, entries: str, filters: dict[str, Any]
) -> Iterator[Any]:
    """Reads a page when the caller needs its entries."""
    cursor = None
    while True:
        page = read(workspace_id=access.workspace_id, vault_id=vault_id, cursor=cursor, limit=PAGE, **filters)
        yield from getattr(page, entries)
        if page.next_cursor is None:
            return
        if page.next_cursor == cursor:
            fail("the platform repeats the same page", "Report it to its operator.", Exit.PLATFORM)
        cursor = page.next_cursor


def _write(file: Path, columns: spreadsheets.Columns, records: Iterable[Any]) -> None:
    """Written whole or not at all, readable by its owner alone; one page at a time is in memory."""
    # The header is no row.
    written = -1

    def lines() -> Iterator[bytes]:
        nonlocal written
        for line in spreadsheets.csv_of(columns, records):
            written += 1
            yield line.encode()

    write_file(file, lines())
    give({"file": str(file), "rows": written}, f"{count(written, 'row is', 'rows are')} in {file}.")
