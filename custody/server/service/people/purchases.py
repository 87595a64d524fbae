"""Storing what the purchase provider reports, and listing each member's purchases."""

import json
import threading
from datetime import datetime
from decimal import Decimal
from hashlib import sha256

import structlog
from pydantic import ValidationError
from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from custody.schemas import purchases as wire
from custody.schemas.call import Page
from custody.schemas.common import Unreadable
from custody.schemas.purchases import PurchaseStatus
from custody.server.domain.audit import Category
from custody.server.domain.credentials import OPERATOR, Caller
from custody.server.domain.errors import Fault, Invalid, NotFound, WebhookRefused
from custody.server.domain.ports import Clock
from custody.server.domain.purchases import TOLERANCE, is_genuine, is_news, issued_secret
from custody.server.service.audit.log import AuditLog
from custody.server.service.secrets import Purpose, Secrets
from custody.server.service.shown import shown
from custody.server.store import Store
from custody.server.store.models import Key, Profile, Purchase, Workspace
from multisig import MultisigError, Network, decode_address

log = structlog.get_logger()

# The prefix of events about purchases; a provider sends others to the same URL.
EVENTS = "transaction_"
AMOUNTS = (
    "base_currency_amount",
    "quote_currency_amount",
    "fee_amount",
    "extra_fee_amount",
    "network_fee_amount",
)


class Purchases:
    def __init__(self, store: Store, clock: Clock, audit: AuditLog, secrets: Secrets) -> None:
        self._store = store
        self._clock = clock
        self._audit = audit
        self._secrets = secrets
        self._deliveries = _Deliveries()

    def receive(self, header: str | None, body: bytes, trace_id: str) -> None:
        """Takes a delivery. One that is not about a purchase, or older than the stored report, changes
        nothing.


        Raises WebhookRefused (not signed, late, or delivered before), Invalid (signed, but not understood).
        """
        now = self._clock()
        if not is_genuine(header, body, self._secrets.of(Purpose.PURCHASE_WEBHOOK), now):
            raise WebhookRefused("The delivery is not signed with the webhook's secret, or its time is off.")
        delivery = sha256((header or "").encode() + b"\n" + body).digest()
        if not self._deliveries.claim(delivery, now):
            raise WebhookRefused("This delivery was received before.")
        try:
            report = _read(body)
            if report is not None:
                self._store_report(report, trace_id)
        except BaseException:
            self._deliveries.release(delivery)
            raise

    def adopt_key(self, key: str) -> None:
        """Takes a key that the provider issued. Deliveries signed with former keys stay valid. Raises
        Invalid.
        """
        try:
            secret = issued_secret(key)
        except ValueError as error:
            raise Invalid(f"That is not a key: {error}.") from None
        self._secrets.put(Purpose.PURCHASE_WEBHOOK, secret)
        with self._store.write() as db:
            self._audit.record(
                db, OPERATOR, Category.ACCESS, "SECRET_ROTATED", Purpose.PURCHASE_WEBHOOK.value
            )

    def page(
        self, db: Session, caller: Caller, query: wire.PurchasesQuery
    ) -> Page[wire.PurchaseTransaction | Unreadable]:
        """The caller's purchases, the newest first. Raises NotFound for an ``after`` that is not theirs."""
        mine = Purchase.user_id == caller.user_id
        total = db.scalar(select(func.count()).select_from(Purchase).where(mine)) or 0
        wanted = select(Purchase).where(mine).order_by(Purchase.created_at.desc(), Purchase.id.desc())
        if query.after is not None:
            last = db.get(Purchase, query.after)
            if last is None or last.user_id != caller.user_id:
                raise NotFound("There is no such purchase of yours.")
            before = Purchase.created_at < last.created_at
            wanted = wanted.where(
                or_(before, (Purchase.created_at == last.created_at) & (Purchase.id < last.id))
            )
        rows = list(db.scalars(wanted.limit(query.limit + 1)))
        items = shown(rows[: query.limit], lambda some: list(map(_shape, some)), "id", lambda row: row.id)
        return Page(items, total, has_more=len(rows) > query.limit)

    def _store_report(self, report: wire.ReportedPurchase, trace_id: str) -> None:
        with self._store.write() as db:
            row = db.get(Purchase, report.id)
            known = None if row is None else (PurchaseStatus(row.status), row.updated_at)
            if not is_news(known, report.status, report.updated_at):
                log.info("purchase report is not newer", purchase=report.id, status=report.status.value)
                return
            values = _values(report)
            owner = _owner(db, report.wallet_address)
            if row is None:
                db.add(Purchase(user_id=owner, **values))
            else:
                for name, value in values.items():
                    setattr(row, name, value)
                row.user_id = row.user_id or owner
            self._audit.record(
                db,
                Caller(user_id=0, session_id=0, name="purchase provider", trace_id=trace_id),
                Category.PURCHASES,
                "PURCHASE_REPORTED" if row is None else "PURCHASE_UPDATED",
                f"purchase {report.id} is {report.status.value}, of user {owner or 'unknown'}",
            )


class _Deliveries:
    """Deliveries of the last minutes: the same bytes with the same signature are a replay (P45).

    Kept in this process only. In another process, or after a restart, a replay is not newer than the stored
    report and changes nothing.
    """

    def __init__(self) -> None:
        self._seen: dict[bytes, datetime] = {}
        self._lock = threading.Lock()

    def claim(self, delivery: bytes, now: datetime) -> bool:
        with self._lock:
            # A delivery with a time in the near future is valid for twice the tolerance.
            self._seen = {each: at for each, at in self._seen.items() if abs(now - at) <= 2 * TOLERANCE}
            if delivery in self._seen:
                return False
            self._seen[delivery] = now
            return True

    def release(self, delivery: bytes) -> None:
        """A delivery that failed may be sent again."""
        with self._lock:
            self._seen.pop(delivery, None)


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
        faults = tuple(
            Fault("".join(f"/{part}" for part in fault["loc"]), str(fault["msg"]))
            for fault in error.errors(include_input=False, include_url=False)[:5]
        )
        raise Invalid("The delivery is signed, but is not a purchase report.", faults=faults) from None
    except (ValueError, RecursionError):
        raise Invalid("The delivery is signed, but is not JSON.") from None


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _values(report: wire.ReportedPurchase) -> dict[str, object]:
    values = report.model_dump()
    return {**values, "status": report.status.value, **{name: f"{values[name]:f}" for name in AMOUNTS}}


def _owner(db: Session, address: str) -> int | None:
    """The member whose profile has the address; the first one where two registered it."""
    for network, chain in db.execute(select(Workspace.network, Workspace.chain).distinct()):
        try:
            script = decode_address(address, Network(chain))
        except MultisigError:
            continue
        owner = (
            select(Key.user_id)
            .join(Profile, Profile.key_id == Key.id)
            .where(Profile.receive_script == script, Key.network == network)
            .order_by(Profile.created_at, Key.id)
        )
        found = db.scalars(owner.limit(1)).first()
        if found is not None:
            return found
    return None


def _shape(row: Purchase) -> wire.PurchaseTransaction:
    amounts = {name: Decimal(getattr(row, name)) for name in AMOUNTS}
    names = wire.PurchaseTransaction.model_fields
    return wire.PurchaseTransaction.model_validate({name: getattr(row, name) for name in names} | amounts)
