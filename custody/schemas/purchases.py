"""Purchases of bitcoin: what the provider reports, and what the buyer reads."""

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StrictBool,
    StringConstraints,
)
from pydantic.alias_generators import to_camel

from custody.schemas.call import Auth, Call, SignedBody, pages
from custody.schemas.common import (
    Done,
    Label,
    Line,
    PageSize,
    Prose,
    Request,
    Shape,
    TextId,
    Timestamp,
)
from custody.schemas.errors import ErrorCode

# What a double holds exactly, which is what a JSON number is to most readers (RFC 8259, section 6; IEEE 754,
# DBL_DIG).
MAX_DIGITS = 15
MAX_PLACES = 12


class PurchaseStatus(StrEnum):
    WAITING_PAYMENT = "waitingPayment"
    PENDING = "pending"
    WAITING_AUTHORIZATION = "waitingAuthorization"
    COMPLETED = "completed"
    FAILED = "failed"


def _exact(value: Decimal) -> Decimal:
    """Exact as a number in JSON: neither too large nor too fine. The exponent is bounded before any use."""
    if not value.is_finite() or value < 0 or not -MAX_PLACES <= value.adjusted() < MAX_DIGITS:
        raise ValueError("an amount is a plain decimal of at most fifteen digits")
    plain = value.normalize()
    exponent = plain.as_tuple().exponent
    if len(plain.as_tuple().digits) > MAX_DIGITS or not isinstance(exponent, int) or -exponent > MAX_PLACES:
        raise ValueError("an amount is a plain decimal of at most fifteen digits")
    return value


def _no_boolean(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("an amount is a number")  # noqa: TRY004 - pydantic takes a ValueError for a refusal
    return value


# Written as a JSON number, as the specification has it, and exact as one.
Amount = Annotated[
    Decimal,
    Field(ge=0, le=10**MAX_DIGITS),
    AfterValidator(_exact),
    PlainSerializer(float, return_type=float, when_used="json"),
]
ReportedAmount = Annotated[Decimal, BeforeValidator(_no_boolean), AfterValidator(_exact)]
CurrencyCode = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]{1,20}$")]


def _or(default: object) -> BeforeValidator:
    """The provider writes null for what it does not know yet."""
    return BeforeValidator(lambda value: default if value is None else value)


NullableAmount = Annotated[ReportedAmount, _or(Decimal(0))]
NullableText = Annotated[Line, _or("")]


class ReportedPurchase(Shape):
    """The provider's transaction. Fields we have no use for pass; currencies are objects there, or codes."""

    model_config = ConfigDict(alias_generator=to_camel)

    id: TextId
    status: PurchaseStatus
    created_at: Timestamp
    updated_at: Timestamp
    base_currency_amount: NullableAmount = Decimal(0)
    base_currency_code: CurrencyCode = Field(
        validation_alias=AliasChoices("baseCurrencyCode", AliasPath("baseCurrency", "code"))
    )
    quote_currency_amount: NullableAmount = Decimal(0)
    quote_currency_code: CurrencyCode = Field(
        validation_alias=AliasChoices("quoteCurrencyCode", AliasPath("currency", "code"))
    )
    fee_amount: NullableAmount = Decimal(0)
    extra_fee_amount: NullableAmount = Decimal(0)
    network_fee_amount: NullableAmount = Decimal(0)
    are_fees_included: Annotated[StrictBool, _or(default=False)] = False
    wallet_address: NullableText = ""
    crypto_transaction_id: NullableText = ""
    failure_reason: Line | None = None
    external_transaction_id: NullableText = ""


class PurchaseReport(Shape):
    """A delivery: ``type`` says what it is about, ``data`` is what it says."""

    type: Annotated[str, StringConstraints(max_length=100)]
    data: dict[Label, Any]


class PurchaseTransaction(Shape):
    """The specification's purchase."""

    id: Label
    status: PurchaseStatus
    created_at: Timestamp
    updated_at: Timestamp
    base_currency_amount: Amount
    base_currency_code: Label
    quote_currency_amount: Amount
    quote_currency_code: Label
    fee_amount: Amount
    extra_fee_amount: Amount
    network_fee_amount: Amount
    are_fees_included: bool
    wallet_address: Label
    crypto_transaction_id: Label
    failure_reason: Prose | None
    external_transaction_id: Label


class PurchasesQuery(Request):
    """``after`` is the last id seen."""

    after: TextId | None = None
    limit: PageSize = 100


PURCHASES_WEBHOOK = Call(
    "POST", "/webhooks/purchases", SignedBody, Done,
    "What the purchase provider reports, signed over the body as it was sent (``Moonpay-Signature-V2``).",
    Auth.OPEN, refuses=(ErrorCode.VALIDATION, ErrorCode.UNAUTHENTICATED),
)  # fmt: skip
PURCHASES = Call(
    "GET", "/api/v1/purchases", PurchasesQuery, pages(PurchaseTransaction, by="id"),
    "The caller's own purchases, the newest first.", Auth.SIGNED_IN, refuses=(ErrorCode.NOT_FOUND,),
)  # fmt: skip
