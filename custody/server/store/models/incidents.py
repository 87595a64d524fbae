"""Advisories about devices, as their publishers signed them; and evacuations: exposed vaults whose coins two
people decided to move to vaults of other keys.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, UniqueConstraint
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


class Evacuation(Base):
    """An evacuation that two people decided. ``plan_hash``: of the plan that both saw. The second person's
    name is in the change that they confirmed.
    """

    __tablename__ = "evacuations"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"), index=True)
    started_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    started_by_name: Mapped[str]
    plan_hash: Mapped[str]
    priority: Mapped[str]
    started_at: Mapped[datetime]


class EvacuatedVault(Base):
    """One vault of an evacuation, and how far it is (`domain.evacuation`): ``reason`` where it stopped.

    ``name``, ``signers`` (user ids) and ``key_ids``: of its replacement, as planned. Where the plan found no
    replacement, ``signers`` is empty. ``asked_by``: the user in whose name it is worked on, who started it
    or swept again.
    """

    __tablename__ = "evacuated_vaults"
    __table_args__ = (CheckConstraint("state IN ('PLANNED', 'REPLACED', 'PROPOSED', 'LEFT')", name="state"),)

    evacuation_id: Mapped[str] = mapped_column(ForeignKey("evacuations.id"), primary_key=True)
    vault_id: Mapped[str] = mapped_column(ForeignKey("vaults.id"), primary_key=True, index=True)
    place: Mapped[int]
    state: Mapped[str]
    name: Mapped[str]
    signers: Mapped[list[int]]
    key_ids: Mapped[list[str]]
    asked_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    replacement_id: Mapped[str | None] = mapped_column(ForeignKey("vaults.id"))
    reason: Mapped[str | None]
    replaced_at: Mapped[datetime | None]
    proposed_at: Mapped[datetime | None]
