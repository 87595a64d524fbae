"""A vault's movements: what each transaction adds and takes, with the balance after it."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from custody.server.store.models.base import Base

_PENDING = text("height IS NULL")


class Movement(Base):
    """One transaction, as one vault sees it. It follows from the vault's coins, and is written with them.

    ``place`` orders a block's movements of this vault, parents before children. ``balance_sats`` is the sum
    of the vault's confirmed movements up to this one. ``height``, ``place``, ``block_hash``, ``mined_at`` and
    ``balance_sats`` are null while it is unconfirmed.
    """

    __tablename__ = "movements"
    __table_args__ = (
        # The ordered list; the list of one kind; the pending movements.
        Index("ix_movements_in_order", "vault_id", "height", "place"),
        Index("ix_movements_of_kind", "vault_id", "kind", "height", "place"),
        Index(
            "ix_movements_pending",
            "vault_id",
            "first_seen_at",
            "txid",
            sqlite_where=_PENDING,
            postgresql_where=_PENDING,
        ),
        # By transaction, in any vault.
        Index("ix_movements_of_transaction", "txid", "chain"),
        # The blocks whose time is known.
        Index("ix_movements_blocks", "chain", "height"),
    )

    vault_id: Mapped[str] = mapped_column(ForeignKey("vaults.id"), primary_key=True)
    txid: Mapped[str] = mapped_column(primary_key=True)
    chain: Mapped[str]
    kind: Mapped[str]
    # The platform's own proposal of it.
    psbt_id: Mapped[str | None] = mapped_column(ForeignKey("proposals.id"))
    received_sats: Mapped[int]
    sent_sats: Mapped[int]
    amount_sats: Mapped[int]
    height: Mapped[int | None]
    place: Mapped[int | None]
    block_hash: Mapped[str | None]
    mined_at: Mapped[datetime | None]
    balance_sats: Mapped[int | None]
    first_seen_at: Mapped[datetime]
