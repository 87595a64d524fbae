"""What the purchase provider reports: the webhook's signature, which reports are news, storing them, and
listing each member's purchases.

The signature is MoonPay's: ``Moonpay-Signature-V2: t=<seconds>,s=<hex>``, an HMAC-SHA256 of ``t.body``
(dev.moonpay.com, "Checking a webhook signature"). Deliveries come more than once and in any order.
"""

import hmac
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import Final

import structlog
from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas import purchases as wire
from custody.schemas.call import Page, SignedBody
from custody.schemas.common import Done, Unreadable
from custody.server.calls import Ctx, In, Steps, serves, serves_in_parts
from custody.server.errors import Invalid, RateLimited, Unauthenticated, refused
from custody.server.rotation import SECRET_ROTATED
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import OPERATOR
from custody.server.secrets import Purpose
from custody.server.services import Services
from custody.server.shown import newest_first, shape_of, shown
from custody.server.store.models import KeyRow, ProfileRow, PurchaseRow, WorkspaceRow
from multisig import MultisigError, Network, decode_address

log = structlog.get_logger()

SIGNATURE_HEADER: Final = "Moonpay-Signature-V2"
# As Stripe's libraries, which signed webhooks in this form first, allow by default.
TOLERANCE: Final = timedelta(minutes=5)
_WAITING, _PENDING, _AUTHORIZING, _COMPLETED, _FAILED = wire.PurchaseStatus
# The statuses that a newer report may give after each. Steps in between may be missing; an end is final.
FOLLOWS: Final[dict[wire.PurchaseStatus, frozenset[wire.PurchaseStatus]]] = {
    _WAITING: frozenset(wire.PurchaseStatus),
    **dict.fromkeys((_PENDING, _AUTHORIZING), frozenset(wire.PurchaseStatus) - {_WAITING}),
    **dict.fromkeys((_COMPLETED, _FAILED), frozenset[wire.PurchaseStatus]()),
}
_PART = re.compile(r"\s*([a-z]+)=([0-9A-Za-z]+)\s*")
MAX_HEADER = 500
# A secret that we made has 32 bytes; one that the provider issued is stored with this prefix, and is longer.
_ISSUED: Final = b"issued:"
_MADE_BYTES: Final = 32
_ISSUED_KEY = re.compile(r"[\x21-\x7e]{26,200}")

_HOW: Final = "Sign it with the secret that custody admin webhook-secret shows, at the time of sending."
# The prefix of events about purchases; a provider sends others to the same URL.
EVENTS: Final = "transaction_"
AMOUNTS: Final = (
    "base_currency_amount",
    "quote_currency_amount",
    "fee_amount",
    "extra_fee_amount",
    "network_fee_amount",
)


REPORTED = Event(
    "PURCHASE_REPORTED", "// purchase {purchase} is {status}, of [{user}|an unknown user]", Category.PURCHASES
)
UPDATED = replace(REPORTED, action="PURCHASE_UPDATED")


@serves_in_parts(wire.PURCHASES_WEBHOOK, first=In.NOTHING)
def purchases_webhook(ctx: Ctx, delivery: SignedBody) -> Steps[Done]:
    """One that is not about a purchase, or older than the stored report, changes nothing.

    Raises Unauthenticated (not signed, late, or delivered before), Invalid (signed, but not understood).
    """
    header, body = delivery.headers.get(SIGNATURE_HEADER), delivery.content
    if not is_genuine(header, body, ctx.tools.secrets.of(Purpose.PURCHASE_WEBHOOK), ctx.now):
        sentence = "The delivery is not signed with the webhook's secret, or its time is off."
        raise Unauthenticated(sentence, hint=_HOW)
    key = sha256((header or "").encode() + b"\n" + body).digest()
    try:
        ctx.services.deliveries.take(key)
    except RateLimited:
        raise Unauthenticated("This delivery was received before.", hint=_HOW) from None
    try:
        report = _read(body)
        if report is not None:
            ctx = yield In.WRITE
            _store(ctx, report)
            yield In.NOTHING
    except BaseException:
        # Also where the commit fails: it may be sent again.
        ctx.services.deliveries.give_back(key)
        raise
    return Done()


@serves(wire.PURCHASES)
def purchases(ctx: Ctx, query: wire.PurchasesQuery) -> Page[wire.PurchaseTransaction | Unreadable]:
    """NotFound for an ``after`` that is not the caller's."""
    mine = PurchaseRow.user_id == ctx.caller.user_id
    rows, total, has_more = newest_first(ctx.db, PurchaseRow, mine, query.after, query.limit)

    def shapes(some: Sequence[PurchaseRow]) -> list[wire.PurchaseTransaction]:
        return [shape_of(wire.PurchaseTransaction, row) for row in some]

    return Page(shown(rows, shapes, "id", lambda row: str(row.id)), total, has_more)


def adopt_key(services: Services, key: str) -> None:
    """For the operator: takes a key that the provider issued. Deliveries signed with former keys stay valid.
    Raises Invalid.
    """
    if not _ISSUED_KEY.fullmatch(key):
        raise Invalid("That is not a key: a webhook's key has 26 to 200 printable characters without spaces.")
    services.tools.secrets.put(Purpose.PURCHASE_WEBHOOK, _ISSUED + key.encode())
    with services.store.write() as db:
        services.tools.audit.record(
            db, OPERATOR, SECRET_ROTATED, None, purpose=Purpose.PURCHASE_WEBHOOK.value
        )


def _store(ctx: Ctx, report: wire.ReportedPurchase) -> None:
    row = ctx.db.get(PurchaseRow, report.id)
    known = None if row is None else (wire.PurchaseStatus(row.status), row.updated_at)
    if not is_news(known, report.status, report.updated_at):
        log.info("purchase report is not newer", purchase=report.id, status=report.status.value)
        return
    values = _values(report)
    owner = _owner(ctx.db, report.wallet_address)
    if row is None:
        ctx.db.add(PurchaseRow(user_id=owner, **values))
    else:
        for name, value in values.items():
            setattr(row, name, value)
        row.user_id = row.user_id or owner
    provider = replace(ctx.caller, name="purchase provider")
    replace(ctx, caller=provider).event(
        REPORTED if row is None else UPDATED,
        purchase=report.id,
        status=report.status.value,
        user=owner,
    )


def _read(body: bytes) -> wire.ReportedPurchase | None:
    """Reads numbers as decimals, never as floats. None for an event that is not about a purchase."""
    try:
        parsed = json.loads(body, parse_float=Decimal, parse_constant=_refuse)
        report = wire.PurchaseReport.model_validate(parsed)
        if not report.type.startswith(EVENTS):
            log.info("webhook event is not about a purchase", event_type=report.type)
            return None
        return wire.ReportedPurchase.model_validate(report.data)
    except ValidationError as error:
        sentence = "The delivery is signed, but is not a purchase report."
        raise refused(error, sentence=sentence) from None
    except (ValueError, RecursionError):
        raise Invalid("The delivery is signed, but is not JSON.") from None


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _values(report: wire.ReportedPurchase) -> dict[str, object]:
    values = report.model_dump()
    return {**values, "status": report.status.value, **{name: f"{values[name]:f}" for name in AMOUNTS}}


def _owner(db: Session, address: str) -> int | None:
    """The member whose profile has the address; the first one where two registered it."""
    for network, chain in db.execute(select(WorkspaceRow.network, WorkspaceRow.chain).distinct()):
        try:
            script = decode_address(address, Network(chain))
        except MultisigError:
            continue
        owner = (
            select(KeyRow.user_id)
            .join(ProfileRow, ProfileRow.key_id == KeyRow.id)
            .where(ProfileRow.receive_script == script, KeyRow.network == network)
            .order_by(ProfileRow.created_at, KeyRow.id)
        )
        user = db.scalars(owner.limit(1)).first()
        if user is not None:
            return user
    return None


def webhook_key(secret: bytes) -> str:
    """The shared secret as text, whose characters are the HMAC's key."""
    return secret.hex() if len(secret) == _MADE_BYTES else secret.removeprefix(_ISSUED).decode()


def signature_of(secret: bytes, timestamp: str, body: bytes) -> str:
    return hmac.new(webhook_key(secret).encode(), timestamp.encode() + b"." + body, "sha256").hexdigest()


def is_genuine(header: str | None, body: bytes, secrets: Sequence[bytes], now: datetime) -> bool:
    """Whether one of ``secrets`` signed the body at a time that is near enough to now, before or after."""
    parts = _parts(header or "")
    if parts is None:
        return False
    timestamp, given = parts
    # Always all of them: the time taken must not tell which secret matches.
    matches = [
        hmac.compare_digest(signature_of(secret, timestamp, body).encode(), given.encode())
        for secret in secrets
    ]
    signed_at = datetime.fromtimestamp(int(timestamp), UTC)
    return any(matches) and abs(now - signed_at) <= TOLERANCE


def _parts(header: str) -> tuple[str, str] | None:
    """The timestamp and the signature; None where either is missing, repeated or malformed."""
    if len(header) > MAX_HEADER:
        return None
    parts: dict[str, str] = {}
    for part in header.split(","):
        match = _PART.fullmatch(part)
        if match is None or match[1] in parts:
            return None
        parts[match[1]] = match[2]
    timestamp, given = parts.get("t", ""), parts.get("s", "")
    # Eleven digits are the year 5138.
    if not (re.fullmatch("[0-9]{1,11}", timestamp) and re.fullmatch("[0-9a-f]{64}", given)):
        return None
    return timestamp, given


def is_news(
    known: tuple[wire.PurchaseStatus, datetime] | None, status: wire.PurchaseStatus, updated_at: datetime
) -> bool:
    """Whether a report changes what is known: it is newer, and its status may follow."""
    if known is None:
        return True
    known_status, known_at = known
    return updated_at > known_at and status in FOLLOWS[known_status]
