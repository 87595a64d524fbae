"""Storing what the purchase provider reports, and listing each member's purchases."""

import json
from dataclasses import replace
from decimal import Decimal
from hashlib import sha256
from typing import Final

import structlog
from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas.call import Page, SignedBody
from custody.schemas.common import Done, Unreadable
from custody.schemas.purchases import (
    PURCHASES,
    PURCHASES_WEBHOOK,
    PurchaseReport,
    PurchasesQuery,
    PurchaseStatus,
    PurchaseTransaction,
    ReportedPurchase,
)
from custody.server.calls import Ctx, In, Steps, serves, serves_in_parts
from custody.server.errors import Invalid, RateLimited, WebhookRefused, faults_of
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import OPERATOR
from custody.server.rules.purchases import SIGNATURE_HEADER, is_genuine, is_news, issued_secret
from custody.server.secrets import Purpose
from custody.server.services import Services
from custody.server.shown import newest_first, shown
from custody.server.sign_in.rotation import SECRET_ROTATED
from custody.server.store.models import KeyRow, ProfileRow, PurchaseRow, WorkspaceRow
from multisig import MultisigError, Network, decode_address

log = structlog.get_logger()

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
    "PURCHASE_REPORTED",
    "purchase {purchase} is {status}, of user [{user}|unknown]",
    category=Category.PURCHASES,
)
UPDATED = replace(REPORTED, action="PURCHASE_UPDATED")


@serves_in_parts(PURCHASES_WEBHOOK, first=In.NOTHING)
def purchases_webhook(ctx: Ctx, delivery: SignedBody) -> Steps[Done]:
    """One that is not about a purchase, or older than the stored report, changes nothing.

    Raises WebhookRefused (not signed, late, or delivered before), Invalid (signed, but not understood).
    """
    header, body = delivery.headers.get(SIGNATURE_HEADER), delivery.content
    if not is_genuine(header, body, ctx.tools.secrets.of(Purpose.PURCHASE_WEBHOOK), ctx.now):
        raise WebhookRefused("The delivery is not signed with the webhook's secret, or its time is off.")
    key = sha256((header or "").encode() + b"\n" + body).digest()
    try:
        ctx.services.deliveries.take(key)
    except RateLimited:
        raise WebhookRefused("This delivery was received before.") from None
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


@serves(PURCHASES)
def purchases(ctx: Ctx, query: PurchasesQuery) -> Page[PurchaseTransaction | Unreadable]:
    """NotFound for an ``after`` that is not the caller's."""
    mine = PurchaseRow.user_id == ctx.caller.user_id
    rows, total, has_more = newest_first(ctx.db, PurchaseRow, mine, query.after, query.limit)
    items = shown(rows, lambda some: list(map(_shape, some)), "id", lambda row: str(row.id))
    return Page(items, total, has_more)


def adopt_key(services: Services, key: str) -> None:
    """For the operator: takes a key that the provider issued. Deliveries signed with former keys stay valid.
    Raises Invalid.
    """
    try:
        secret = issued_secret(key)
    except ValueError as error:
        raise Invalid(f"That is not a key: {error}.") from None
    services.tools.secrets.put(Purpose.PURCHASE_WEBHOOK, secret)
    with services.store.write() as db:
        services.tools.audit.record(
            db, OPERATOR, SECRET_ROTATED, None, purpose=Purpose.PURCHASE_WEBHOOK.value
        )


def _store(ctx: Ctx, report: ReportedPurchase) -> None:
    row = ctx.db.get(PurchaseRow, report.id)
    known = None if row is None else (PurchaseStatus(row.status), row.updated_at)
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


def _read(body: bytes) -> ReportedPurchase | None:
    """Reads numbers as decimals, never as floats. None for an event that is not about a purchase."""
    try:
        parsed = json.loads(body, parse_float=Decimal, parse_constant=_refuse)
        report = PurchaseReport.model_validate(parsed)
        if not report.type.startswith(EVENTS):
            log.info("webhook event is not about a purchase", event_type=report.type)
            return None
        return ReportedPurchase.model_validate(report.data)
    except ValidationError as error:
        sentence = "The delivery is signed, but is not a purchase report."
        raise Invalid(sentence, faults=faults_of(error)) from None
    except (ValueError, RecursionError):
        raise Invalid("The delivery is signed, but is not JSON.") from None


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _values(report: ReportedPurchase) -> dict[str, object]:
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
        found = db.scalars(owner.limit(1)).first()
        if found is not None:
            return found
    return None


def _shape(row: PurchaseRow) -> PurchaseTransaction:
    amounts = {name: Decimal(getattr(row, name)) for name in AMOUNTS}
    names = PurchaseTransaction.model_fields
    return PurchaseTransaction.model_validate({name: getattr(row, name) for name in names} | amounts)
