"""What arrives from outside an organisation: requests for one, and purchases that a provider reports."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from custody.server.store.models.base import Base


class OnboardingRequest(Base):
    """Somebody asks for an organisation with a first workspace; an operator decides."""

    __tablename__ = "onboarding_requests"
    __table_args__ = (
        CheckConstraint("status IN ('pending', 'approved', 'rejected')", name="status"),
        CheckConstraint("(created_org_id IS NOT NULL) = (status = 'approved')", name="created_org"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    requester_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    first_name: Mapped[str]
    last_name: Mapped[str]
    work_email: Mapped[str]
    messaging_platform: Mapped[str]
    messaging_handle: Mapped[str]
    monthly_volume: Mapped[str]
    referral_source: Mapped[str]
    referral_source_detail: Mapped[str | None]
    org_name: Mapped[str]
    workspace_name: Mapped[str]
    network: Mapped[str]
    status: Mapped[str] = mapped_column(index=True)
    review_note: Mapped[str | None]
    approved_by_email: Mapped[str | None]
    approved_at: Mapped[datetime | None]
    created_org_id: Mapped[int | None] = mapped_column(ForeignKey("organisations.id"))
    submitted_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class Purchase(Base):
    """A purchase of bitcoin as its provider last reported it. Amounts are decimals, kept as the text they came in.

    ``user_id`` is the member whose profile address receives it; null where the address is nobody's.
    """

    __tablename__ = "purchases"

    id: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"), index=True)
    status: Mapped[str]
    base_currency_amount: Mapped[str]
    base_currency_code: Mapped[str]
    quote_currency_amount: Mapped[str]
    quote_currency_code: Mapped[str]
    fee_amount: Mapped[str]
    extra_fee_amount: Mapped[str]
    network_fee_amount: Mapped[str]
    are_fees_included: Mapped[bool]
    wallet_address: Mapped[str]
    crypto_transaction_id: Mapped[str]
    failure_reason: Mapped[str | None]
    external_transaction_id: Mapped[str]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
