"""The console's templates and files, and words and figures for what the platform's shapes say in codes."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Final

import segno
from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup
from starlette.responses import Response, StreamingResponse

from custody.common.change_words import facts_of, kind_words, nameless_field, open_words, title_of
from custody.common.pages.figures import sentence
from custody.common.pages.rendering import Templates
from custody.common.pages.serving import attachment
from custody.common.spreadsheets import Columns, csv_of
from custody.common.text import SHORT_ID, bounds, day_words, minute, network_words, plain, until
from custody.schemas.call import PERMISSION_WORDS
from custody.schemas.common import MAX_SATS, format_time
from custody.schemas.users import Member
from multisig import parse_btc
from multisig.tokens import Function, format_units, token_amount

CSV = "text/csv; charset=utf-8"
# In the order of a token's page.
FUNCTION_WORDS: Final[Mapping[Function, str]] = {
    Function.INIT: "Start it",
    Function.TRANSFER: "Transfer",
    Function.MINT: "Mint",
    Function.BURN: "Burn",
    Function.PAUSE: "Pause",
    Function.UNPAUSE: "Unpause",
    Function.ENABLE_WHITELIST: "Turn the whitelist on",
    Function.DISABLE_WHITELIST: "Turn the whitelist off",
    Function.ADD_TO_WHITELIST: "Add to the whitelist",
    Function.REMOVE_FROM_WHITELIST: "Take from the whitelist",
    Function.TRANSFER_OWNERSHIP: "Hand it over",
}


def sats_of(text: str) -> int:
    """From an amount in BTC that the platform wrote."""
    return int(parse_btc(text))


def is_everything(sats: int) -> bool:
    """The first administrator's limit: no one can move more."""
    return sats >= MAX_SATS


def member_words(member: Member) -> str:
    name = plain(" ".join(part for part in (member.first_name.value, member.surname.value) if part))
    email = plain(member.email)
    return f"{name}, {email}" if name else email


def token_units(raw: str | int, decimals: int) -> str:
    """Whole tokens, in groups of three: 125000 with two decimals is ``1,250.00``."""
    whole, point, fraction = format_units(token_amount(int(raw)), decimals).partition(".")
    return f"{int(whole):,}{point}{fraction}"


def moment(at: datetime) -> Markup:
    return Markup('<time datetime="{}">{}</time>').format(format_time(at), minute(at))


@pass_context
def with_links(context: Context, text: str) -> Markup:
    """A sentence, and each proposal that it names as a link."""
    said, workspace = sentence(text), context.get("workspace")
    if workspace is None:
        return said
    link = rf'<a href="{workspace.path}/proposals/\1">proposal \2</a>'
    return Markup(_PROPOSAL.sub(link, str(said)))  # noqa: S704 - hex digits, in an escaped text


_PROPOSAL: Final = re.compile(rf"\bproposal (([0-9a-f]{{{SHORT_ID}}})[0-9a-f]{{{32 - SHORT_ID}}})\b")


def csv_file(name: str, columns: Columns, pages: Iterator[Iterable[Any]]) -> Response:
    """Safe to open in a spreadsheet. The first page is read before the answer begins, so that a refusal
    is a page and no broken file; one page at a time is in memory.
    """
    lines = csv_of(columns, chain(next(pages), chain.from_iterable(pages)))
    return StreamingResponse(lines, headers=attachment(f"{name}.csv"), media_type=CSV)


def _qr(text: str) -> str:
    """As the ``data:`` URL of an SVG. Raises ValueError for a text too long for a QR code."""
    # Black on white whatever the scheme. Scanners look for a quiet zone of four modules (ISO/IEC 18004).
    return str(segno.make(text, error="m", micro=False).svg_data_uri(border=4, light="#fff", dark="#000"))


_HERE = Path(__file__).parent
STATIC = _HERE / "static"
_NAMED: tuple[Any, ...] = (
    moment, day_words, kind_words, sats_of, is_everything, title_of, facts_of, nameless_field, open_words,
    member_words, token_units,
)  # fmt: skip
TEMPLATES = Templates(
    _HERE / "templates",
    filters={
        **{each.__name__: each for each in _NAMED},
        "sentence": with_links,
        "network": network_words,
        "qr": _qr,
        "permission_words": lambda name: PERMISSION_WORDS[name],
        "function_words": lambda name: FUNCTION_WORDS[Function[name.upper()]],
        "short": lambda text: plain(text)[:SHORT_ID],
    },
)
TEMPLATES.environment.globals.update(bounds=bounds, until=until)
