"""Accounts of programs."""

from datetime import datetime

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from custody.server.store.models.base import Base


class ServiceAccount(Base):
    """A program's account in one workspace, which acts in the name of ``made_by``; kept after revocation.
    Secrets are stored as SHA-256; the former one is valid until ``former_until``.
    """

    __tablename__ = "service_accounts"
    __table_args__ = ({"sqlite_autoincrement": True},)

    id: Mapped[int] = mapped_column(primary_key=True)
    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"), index=True)
    made_by: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    name: Mapped[str]
    rights: Mapped[list[str]]
    networks: Mapped[list[str]]
    secret_hash: Mapped[bytes | None]
    former_hash: Mapped[bytes | None]
    former_until: Mapped[datetime | None]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    last_used_from: Mapped[str | None]
