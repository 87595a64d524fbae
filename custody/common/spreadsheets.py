"""CSV (RFC 4180) in UTF-8, safe to open in a spreadsheet; and a vault's movements, coins and token movements
as its rows.

A spreadsheet runs a cell that begins like a formula. Every cell that does, and is no number, is written with
an apostrophe before it, and so is one that begins with an apostrophe itself: dropping one leading apostrophe
always gives the text back.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from custody.common.text import SATS_PER_BTC

if TYPE_CHECKING:
    from custody.schemas.asset_tokens import TokenMovement
    from custody.schemas.history import VaultCoin, VaultMovement


# What OWASP names ("CSV Injection"), the full-width forms that spreadsheets of East Asia read alike, and the
# apostrophe, so that reading back has one meaning.
NEUTRALISED: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\t", "\r", "\n", "'")


# An amount, with its minus; a token's may be as large as a supply.
_FIGURE: Final = re.compile(r"-?[0-9]{1,100}(\.[0-9]{1,100})?")


class _Line:
    """What ``csv`` writes to: it keeps the line that was written last."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text = text


def csv_lines(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The header and one line for each row as it comes, each ending in CRLF."""
    line = _Line()
    writer = csv.writer(line, lineterminator="\r\n")
    writer.writerow(header)
    yield line.text
    for cells in rows:
        writer.writerow(cell if _FIGURE.fullmatch(cell) else neutralise(cell) for cell in cells)
        yield line.text


def neutralise(text: str) -> str:
    return f"'{text}" if text.startswith(NEUTRALISED) else text


MOVEMENT_COLUMNS: Final = (
    "time (UTC)", "status", "kind", "amount (sats)", "amount (BTC)", "fee (sats)", "balance (sats)",
    "balance (BTC)", "title", "addresses", "names", "paid (sats)", "proposed by", "proposal", "replaces",
    "txid", "height", "block",
)  # fmt: skip
COIN_COLUMNS: Final = (
    "state", "amount (sats)", "amount (BTC)", "address", "change", "height", "first seen (UTC)", "proposal",
    "txid", "output",
)  # fmt: skip
TOKEN_COLUMNS: Final = (
    "time (UTC)", "call", "ticker", "token", "amount", "holding", "amount (raw)", "holding (raw)", "decimals",
    "contract", "txid", "height",
)  # fmt: skip


def movement_cells(one: "VaultMovement") -> tuple[str, ...]:
    """A row of the file. Values of several outputs are separated by spaces, names by semicolons."""
    names = "; ".join(output.label or "" for output in one.outputs)
    return (
        _time(one.at),
        one.status,
        one.kind,
        str(one.amount_sats),
        btc(one.amount_sats),
        _number(one.fee_sats),
        _number(one.balance_sats),
        "" if one.balance_sats is None else btc(one.balance_sats),
        one.title or "",
        " ".join(output.address for output in one.outputs),
        names if any(output.label for output in one.outputs) else "",
        " ".join(str(output.amount_sats) for output in one.outputs),
        one.created_by_name or "",
        one.psbt_id or "",
        one.replaces_psbt_id or "",
        one.txid,
        _number(one.height),
        one.block_hash or "",
    )


def coin_cells(one: "VaultCoin") -> tuple[str, ...]:
    return (
        one.state,
        str(one.amount_sats),
        btc(one.amount_sats),
        one.address,
        "yes" if one.is_change else "no",
        _number(one.height),
        _time(one.first_seen_at),
        one.psbt_id or "",
        one.txid,
        str(one.vout),
    )


def token_cells(one: "TokenMovement") -> tuple[str, ...]:
    return (
        _time(one.at),
        one.function,
        one.ticker,
        one.name,
        one.amount,
        one.holding,
        one.amount_raw,
        one.holding_raw,
        str(one.decimals),
        one.contract_address,
        one.txid,
        str(one.height),
    )


def btc(sats: int) -> str:
    """An amount as the API writes it, with a minus: ``-0.25000000``."""
    whole, fraction = divmod(abs(sats), SATS_PER_BTC)
    return f"{'-' if sats < 0 else ''}{whole}.{fraction:08d}"


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
