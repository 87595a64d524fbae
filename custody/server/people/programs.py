"""Ending the accounts of programs with their maker's membership."""

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.server.store.models import ServiceAccountRow

# New ones, of one maker: each sends them a mail.
SECRETS: Final = 20
SECRETS_WINDOW: Final = timedelta(hours=1)


def end_service_accounts(db: Session, user_id: int, workspace_id: int, now: datetime) -> list[int]:
    """Revokes a former member's accounts, which a later membership would activate again. Returns their
    ids.
    """
    query = select(ServiceAccountRow).where(
        ServiceAccountRow.made_by == user_id,
        ServiceAccountRow.workspace_id == workspace_id,
        ServiceAccountRow.revoked_at.is_(None),
    )
    ended = list(db.scalars(query.order_by(ServiceAccountRow.id)))
    for account in ended:
        end_account(account, now)
    return [account.id for account in ended]


def end_account(account: ServiceAccountRow, now: datetime) -> None:
    account.revoked_at = now
    account.secret_hash = account.former_hash = account.former_until = None
