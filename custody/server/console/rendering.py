"""The console's templates and files, and words and figures for what the platform's shapes say in codes."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup
from starlette.responses import Response, StreamingResponse

from custody.common.change_words import PERMISSION_WORDS, facts_of, kind_words, nameless_field, title_of
from custody.common.pages.qr import qr_image
from custody.common.pages.rendering import Templates
from custody.common.pages.serving import attachment
from custody.common.spreadsheets import Columns, csv_of
from custody.common.text import SHORT_ID, bounds, minute, network_words, plain, until
from custody.schemas.asset_tokens import CallStatus
from custody.schemas.common import MAX_SATS, format_time
from custody.schemas.history import CoinState, MovementKind
from custody.schemas.limits import MyLimits, VaultLimits
from custody.schemas.proposals import Advice, ProposalStatus
from custody.schemas.purchases import PurchaseStatus
from custody.schemas.users import Member
from custody.schemas.vaults import VaultControls
from multisig import parse_btc
from multisig.tokens import Function, format_units, token_amount

CSV = "text/csv; charset=utf-8"
MOVEMENT_WORDS: Final[Mapping[MovementKind, str]] = {
    MovementKind.DEPOSIT: "Deposit",
    MovementKind.FORWARD: "Forward of a member's own",
    MovementKind.PAYMENT: "Payment",
    MovementKind.CONSOLIDATION: "Within the vault",
    MovementKind.TOKEN: "Token",
    MovementKind.OUTSIDE: "Not proposed here",
}
COIN_WORDS: Final[Mapping[CoinState, str]] = {
    CoinState.SPENDABLE: "may be spent",
    CoinState.RESERVED: "held by a proposal",
    CoinState.UNCONFIRMED: "in no block yet",
    CoinState.IMMATURE: "of a block's reward, not mature yet",
}
# None: an older record does not say.
KEY_WORDS: Final[Mapping[str | None, str]] = {
    "active": "in use",
    "superseded": "another device replaced it: it approves only moves between the workspace's vaults",
    "lost": "lost: it approves nothing",
    None: "unknown",
}
# Of a token, too, which has no STALLED.
CALL_WORDS: Final[Mapping[CallStatus, str]] = {
    CallStatus.PENDING: "to be signed",
    CallStatus.STALLED: "not sent yet",
    CallStatus.BROADCASTING: "on its way",
    CallStatus.CONFIRMED: "confirmed",
    CallStatus.FAILED: "failed",
}
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
PURCHASE_WORDS: Final[Mapping[PurchaseStatus, str]] = {
    PurchaseStatus.WAITING_PAYMENT: "waits for the payment",
    PurchaseStatus.PENDING: "under way",
    PurchaseStatus.WAITING_AUTHORIZATION: "waits for your bank",
    PurchaseStatus.COMPLETED: "completed",
    PurchaseStatus.FAILED: "failed",
}


class Limit:
    """A limit in words. Where it bounds a sum, ``per_mille`` of it is used."""

    def __init__(self, limits: VaultLimits | MyLimits) -> None:
        self.is_sum = isinstance(limits, MyLimits) or limits.per_cycle
        self.sats, self.used_sats, self.unused_sats = (
            sats_of(text) for text in (limits.limit, limits.used, limits.unused)
        )
        self.per_mille = min(1000, self.used_sats * 1000 // self.sats) if self.sats else 1000
        self.bounds = bounds(per_cycle=self.is_sum, period=limits.cycle_period, day=limits.cycle_day)
        self.until = until(limits.next_reset)
        self.is_everything = is_everything(self.sats)


def sats_of(text: str) -> int:
    """From an amount in BTC that the platform wrote."""
    return int(parse_btc(text))


def is_everything(sats: int) -> bool:
    """The first administrator's limit: no one can move more."""
    return sats >= MAX_SATS


def role_words(limit: str, period: str, day: int) -> str:
    """What each member of a role may propose, from its limit in BTC."""
    sats = sats_of(limit)
    if not sats:
        return "No payment: its limit is 0."
    if is_everything(sats):
        return "As much as the vaults' limits allow."
    return f"At most {limit} BTC {bounds(per_cycle=True, period=period, day=day)}, for each member."


def controls_words(controls: VaultControls) -> tuple[tuple[str, str], ...]:
    """Each of a vault's controls with its state."""
    return (
        ("It pays", "only the address book" if controls.only_address_book else "any address"),
        ("Who proposed a payment", "may approve it" if controls.maker_may_approve else "may not approve it"),
    )


def member_words(member: Member) -> str:
    name = plain(" ".join(part for part in (member.first_name.value, member.surname.value) if part))
    email = plain(member.email)
    return f"{name}, {email}" if name else email


def token_units(raw: str | int, decimals: int) -> str:
    """Whole tokens, in groups of three: 125000 with two decimals is ``1,250.00``."""
    whole, point, fraction = format_units(token_amount(int(raw)), decimals).partition(".")
    return f"{int(whole):,}{point}{fraction}"


STATUS_WORDS: Final[Mapping[ProposalStatus, str]] = {
    ProposalStatus.PENDING: "waiting for signatures",
    ProposalStatus.SIGNED: "signed",
    ProposalStatus.BROADCASTING: "on its way",
    ProposalStatus.CONFIRMED: "confirmed",
    ProposalStatus.STALLED: "stalled",
    ProposalStatus.REJECTED: "declined",
    ProposalStatus.CANCELLED: "cancelled",
    ProposalStatus.EXPIRED: "expired",
    ProposalStatus.INVALIDATED: "no longer possible",
    ProposalStatus.FAILED: "failed",
    ProposalStatus.REPLACED: "replaced",
    ProposalStatus.PROVEN: "proof complete",
}
ADVICE_WORDS: Final[Mapping[Advice, str]] = {
    "bump": "Pay a higher fee.",
    "wait": "Wait: nothing has to be done.",
    "cancel": "Cancel it, or wait until the deposit returns.",
    "resend": "The platform sends it again by itself.",
    "none": "Nothing can be done: it is over.",
}


def moment(at: datetime) -> Markup:
    return Markup('<time datetime="{}">{}</time>').format(format_time(at), minute(at))


def csv_file(name: str, columns: Columns, pages: Iterator[Iterable[Any]]) -> Response:
    """Safe to open in a spreadsheet. The first page is read before the answer begins, so that a refusal
    is a page and no broken file; one page at a time is in memory.
    """
    lines = csv_of(columns, chain(next(pages), chain.from_iterable(pages)))
    return StreamingResponse(lines, headers=attachment(f"{name}.csv"), media_type=CSV)


_HERE = Path(__file__).parent
STATIC = _HERE / "static"
TEMPLATES = Templates(
    _HERE / "templates",
    filters={
        "moment": moment,
        "network": network_words,
        "qr": qr_image,
        "status_words": lambda status: STATUS_WORDS[status],
        "permission_words": lambda name: PERMISSION_WORDS[name],
        "movement_words": lambda kind: MOVEMENT_WORDS[kind],
        "key_words": lambda state: KEY_WORDS[state],
        "call_words": lambda status: CALL_WORDS[CallStatus(status)],
        "function_words": lambda name: FUNCTION_WORDS[Function[name.upper()]],
        "kind_words": kind_words,
        "purchase_words": lambda status: PURCHASE_WORDS[status],
        "limit_shown": Limit,
        "controls_words": controls_words,
        "title_of": title_of,
        "facts_of": facts_of,
        "nameless_field": nameless_field,
        "member_words": member_words,
        "token_units": token_units,
        "advice_words": lambda advice: ADVICE_WORDS[advice],
        "short": lambda text: plain(text)[:SHORT_ID],
    },
)

TEMPLATES.environment.globals["role_words"] = role_words
# The sections of a workspace: words, path, and the permissions of which a person needs one.
READERS = ("VIEW_BALANCES", "PAYMENT_INIT", "PAYMENT_APPROVE", "MANAGE_WORKSPACE")
TEMPLATES.environment.globals["sections"] = (
    ("Overview", "", ()),
    ("Proposals", "proposals", READERS),
    ("Vaults", "vaults", READERS),
    ("Proofs", "proofs", READERS),
    ("Tokens", "tokens", ("VIEW_BALANCES", "PAYMENT_APPROVE", "MANAGE_WORKSPACE")),
    ("Address book", "addresses", ("PAYMENT_INIT", "MANAGE_WORKSPACE")),
    ("Members", "members", ("MANAGE_USERS",)),
    ("Roles and limits", "roles", ("MANAGE_ROLE", "MANAGE_USERS", "MANAGE_WORKSPACE")),
    ("Your limits", "limits", ()),
    ("Second person", "changes", ()),
    ("Programs", "programs", ("MANAGE_USERS", "MANAGE_WORKSPACE")),
    ("Webhooks", "webhooks", ("MANAGE_WORKSPACE",)),
    ("Audit log", "audit", ("VIEW_LOGS",)),
    ("Identity provider", "identity", ("MANAGE_USERS",)),
    ("Workspace", "workspace", ("MANAGE_WORKSPACE",)),
)
