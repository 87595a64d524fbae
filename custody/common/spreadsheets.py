"""CSV (RFC 4180) in UTF-8, safe to open in a spreadsheet; and a vault's movements, coins and token movements
as its rows.

A spreadsheet runs a cell that begins like a formula. Every cell that does, and is no number, is written with
an apostrophe before it, and so is one that begins with an apostrophe itself: dropping one leading apostrophe
always gives the text back.
"""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from custody.common.text import btc

if TYPE_CHECKING:
    from custody.schemas.asset_tokens import TokenMovement
    from custody.schemas.history import VaultCoin, VaultMovement, VaultStatement

# The cells of a record, by their headings.
Columns = Mapping[str, Callable[[Any], object]]
# What OWASP names ("CSV Injection"), the full-width forms that spreadsheets of East Asia read alike, and the
# apostrophe, so that reading back has one meaning.
NEUTRALISED: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\t", "\r", "\n", "'")
# An amount, with its minus; a token's may be as large as a supply.
_FIGURE: Final = re.compile(r"-?[0-9]{1,100}(\.[0-9]{1,100})?")


class _Echo:
    """What ``csv`` writes to: a writer returns what this does."""

    def write(self, text: str) -> str:
        return text


def csv_lines(header: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """The header and one line for each row as it comes, each ending in CRLF. None is an empty cell."""
    writer = csv.writer(_Echo(), lineterminator="\r\n")
    yield writer.writerow(header)
    for cells in rows:
        texts = ("" if cell is None else str(cell) for cell in cells)
        yield writer.writerow(text if _FIGURE.fullmatch(text) else neutralise(text) for text in texts)


def neutralise(text: str) -> str:
    return f"'{text}" if text.startswith(NEUTRALISED) else text


def csv_of(columns: Columns, records: Iterable[Any]) -> Iterator[str]:
    """A file of records, each a line as it comes."""
    return csv_lines(columns, ([cell(each) for cell in columns.values()] for each in records))


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _names(one: "VaultMovement") -> str:
    names = [output.label or "" for output in one.outputs]
    return "; ".join(names) if any(names) else ""


def statement_lines(
    statement: "VaultStatement", movements: "Iterable[VaultMovement]"
) -> "Iterator[VaultMovement]":
    """All ``movements`` of the month between the balance before them and the one after."""
    yield _balance("opening", statement.from_time, statement.opening_height, statement.opening_sats)
    yield from movements
    yield _balance("closing", statement.to_time, statement.closing_height, statement.closing_sats)


def _balance(which: str, at: datetime, height: int, sats: int) -> "VaultMovement":
    """A line among the movements: what the vault held at a time, by no transaction."""
    from custody.schemas.history import VaultMovement

    fields: dict[str, Any] = dict.fromkeys(VaultMovement.model_fields)
    fields |= {"at": at, "kind": f"{which} balance", "status": "confirmed", "height": height}
    fields |= {"balance_sats": sats, "amount_sats": 0, "outputs": [], "more_outputs": 0}
    return VaultMovement.model_construct(**fields)


# Values of several outputs are separated by spaces, names by semicolons.
MOVEMENT_COLUMNS: "Final[Mapping[str, Callable[[VaultMovement], object]]]" = {
    "time (UTC)": lambda one: _time(one.at),
    "status": lambda one: one.status,
    "kind": lambda one: one.kind,
    "amount (sats)": lambda one: one.amount_sats,
    "amount (BTC)": lambda one: btc(one.amount_sats),
    "fee (sats)": lambda one: one.fee_sats,
    "balance (sats)": lambda one: one.balance_sats,
    "balance (BTC)": lambda one: None if one.balance_sats is None else btc(one.balance_sats),
    "title": lambda one: one.title,
    "addresses": lambda one: " ".join(output.address for output in one.outputs),
    "names": _names,
    "paid (sats)": lambda one: " ".join(str(output.amount_sats) for output in one.outputs),
    "proposed by": lambda one: one.created_by_name,
    "proposal": lambda one: one.psbt_id,
    "replaces": lambda one: one.replaces_psbt_id,
    "txid": lambda one: one.txid,
    "height": lambda one: one.height,
    "block": lambda one: one.block_hash,
}
COIN_COLUMNS: "Final[Mapping[str, Callable[[VaultCoin], object]]]" = {
    "state": lambda one: one.state,
    "amount (sats)": lambda one: one.amount_sats,
    "amount (BTC)": lambda one: btc(one.amount_sats),
    "address": lambda one: one.address,
    "change": lambda one: "yes" if one.is_change else "no",
    "height": lambda one: one.height,
    "first seen (UTC)": lambda one: _time(one.first_seen_at),
    "proposal": lambda one: one.psbt_id,
    "txid": lambda one: one.txid,
    "output": lambda one: one.vout,
    "set aside": lambda one: one.set_aside and one.set_aside.reason,
    "until (UTC)": lambda one: one.set_aside and one.set_aside.until and _time(one.set_aside.until),
}
TOKEN_COLUMNS: "Final[Mapping[str, Callable[[TokenMovement], object]]]" = {
    "time (UTC)": lambda one: _time(one.at),
    "call": lambda one: one.function,
    "ticker": lambda one: one.ticker,
    "token": lambda one: one.name,
    "amount": lambda one: one.amount,
    "holding": lambda one: one.holding,
    "amount (raw)": lambda one: one.amount_raw,
    "holding (raw)": lambda one: one.holding_raw,
    "decimals": lambda one: one.decimals,
    "contract": lambda one: one.contract_address,
    "txid": lambda one: one.txid,
    "height": lambda one: one.height,
}
