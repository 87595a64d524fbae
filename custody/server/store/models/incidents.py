"""Advisories about devices, as their publishers signed them."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from custody.server.store.models.base import Base


class AdvisoryPublisher(Base):
    """The newest stored list of a publisher (`custody.advisories.Held`), and its bytes.


    ``taken_by`` is null where the operator took it at the command line.
    """

    __tablename__ = "advisory_publishers"

    root: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str]
    epoch: Mapped[int]
    serial: Mapped[int]
    digest: Mapped[str]
    line: Mapped[bytes]
    taken_at: Mapped[datetime]
    taken_by: Mapped[int | None] = mapped_column(ForeignKey("users.id"))


class StoredAdvisory(Base):
    """One entry of a list. ``serial``: of the list with its present text, stored at ``taken_at``. A withdrawn
    one is no longer in its publisher's newest list; it is kept because evacuations refer to it.
    """

    __tablename__ = "advisories"
    __table_args__ = (UniqueConstraint("root", "name"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    root: Mapped[str] = mapped_column(ForeignKey("advisory_publishers.root"))
    name: Mapped[str]
    serial: Mapped[int]
    body: Mapped[dict[str, Any]]
    taken_at: Mapped[datetime]
    withdrawn_at: Mapped[datetime | None]
