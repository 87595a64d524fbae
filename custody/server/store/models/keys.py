"""Registered keys, their BIP-48 accounts, the signing profile, and open challenges. Public data only."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from custody.server.store.models.base import Base

_ACTIVE = text("status = 'active'")
_TAKEN = text("vault_id IS NOT NULL")


class Key(Base):
    """One device of one person on one network.

    ``xpub`` is BIP-48 account 0; ``derivation_base_path`` is written ``m/48h/1h/0h/2h``. A revoked key carries its
    ``revoked_reason`` (``superseded``, ``lost``, …), which decides what it may still approve.
    """

    __tablename__ = "keys"
    __table_args__ = (
        # A member holds one active key per network; and one device is one person's.
        Index(
            "uq_keys_active_user",
            "user_id",
            "network",
            unique=True,
            sqlite_where=_ACTIVE,
            postgresql_where=_ACTIVE,
        ),
        Index("uq_keys_active_xpub", "xpub", unique=True, sqlite_where=_ACTIVE, postgresql_where=_ACTIVE),
        CheckConstraint("status IN ('active', 'revoked')", name="status"),
        CheckConstraint("(status = 'revoked') = (revoked_reason IS NOT NULL)", name="reason"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    network: Mapped[str]
    status: Mapped[str]
    revoked_reason: Mapped[str | None]
    key_type: Mapped[str]
    xpub: Mapped[str]
    pub_key_hex: Mapped[str]
    master_fingerprint: Mapped[str]
    derivation_base_path: Mapped[str]
    label: Mapped[str | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class KeyAccount(Base):
    """One BIP-48 account of a key. ``vault_id`` is null until a vault takes it; a taken account is never free again.

    No two vaults share an account's xpub, also where a device was registered twice.
    """

    __tablename__ = "key_accounts"
    __table_args__ = (
        UniqueConstraint("key_id", "account"),
        Index(
            "uq_key_accounts_taken_xpub", "xpub", unique=True, sqlite_where=_TAKEN, postgresql_where=_TAKEN
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    key_id: Mapped[str] = mapped_column(ForeignKey("keys.id"))
    account: Mapped[int]
    derivation_path: Mapped[str]
    xpub: Mapped[str] = mapped_column(index=True)
    vault_id: Mapped[str | None] = mapped_column(ForeignKey("vaults.id"))


class Profile(Base):
    """The member's own BIP-84 account, registered with a key. ``receive_script`` is that of its one address (0/0)."""

    __tablename__ = "profiles"

    key_id: Mapped[str] = mapped_column(ForeignKey("keys.id"), primary_key=True)
    xpub: Mapped[str]
    derivation_base_path: Mapped[str]
    receive_script: Mapped[bytes] = mapped_column(index=True)
    created_at: Mapped[datetime]


class KeyChallenge(Base):
    """What a device is asked to sign before its key is registered: for one person, once, for ten minutes.

    ``offered_digest`` is the SHA-256 of every (path, xpub) that the registration must offer.
    """

    __tablename__ = "key_challenges"

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    network: Mapped[str]
    challenge: Mapped[str] = mapped_column(unique=True)
    offered_digest: Mapped[str]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
