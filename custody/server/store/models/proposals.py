"""Transaction proposals: their inputs, the locks on coins, the members' decisions and their signatures."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, ForeignKeyConstraint, Index
from sqlalchemy.orm import Mapped, mapped_column

from custody.server.store.models.base import Base, only_where

OPEN = "(status IN ('PENDING', 'SIGNED', 'STALLED', 'BROADCASTING') OR keeps_coins)"
HELD = "held_sats > 0"
PROOFS = "tx_type = 'proof'"
SCREENED = "screening = 'held'"


class ProposalRow(Base):
    """``family_id`` is the id of the first proposal of a family (itself and its fee bumps).

    ``psbt`` holds the unsigned PSBT's bytes with every verified signature; ``final_tx`` the finalised
    transaction. ``txid_expected`` is known from the start, for signatures of segwit inputs do not change the
    txid; ``txid`` is set at broadcast.
    """

    __table_args__ = (
        # The ordered lists.
        Index("ix_proposals_by_status", "workspace_id", "status", "created_at", "id"),
        Index("ix_proposals_by_age", "workspace_id", "created_at", "id"),
        Index("ix_proposals_proofs", "workspace_id", "created_at", "id", **only_where(PROOFS)),
        Index(None, "status", "expires_at"),
        # The sums of a member or a vault in a cycle.
        Index("ix_proposals_of_member", "workspace_id", "created_by", "created_at", "movement_sats"),
        Index("ix_proposals_of_vault", "vault_id", "created_at", "movement_sats"),
        # A vault's open proposals.
        Index("ix_proposals_open", "vault_id", "created_at", "id", **only_where(OPEN)),
        # The proposal of a transaction; unique, so that the chain's state of it applies to one proposal.
        Index(None, "txid_expected", unique=True),
        # Ended proposals that are still watched.
        Index("ix_proposals_kept", "id", **only_where("keeps_coins", "keeps_coins = 1")),
        # Pending proposals with a rival in the mempool, which are checked again when it has gone.
        Index("ix_proposals_troubled", "status", **only_where("trouble IS NOT NULL")),
        # Those that screening holds, read each second.
        Index("ix_proposals_screened", "screening_until", **only_where(SCREENED)),
        # Read at each block: which workspaces have proposals whose confirmations change.
        Index("ix_proposals_mined", "workspace_id", "block_height", **only_where("block_height IS NOT NULL")),
        # Proposals in blocks that a reorganisation disconnects.
        Index(None, "block_height"),
        CheckConstraint("fee_sats >= 0", name="fee"),
        CheckConstraint("movement_sats >= 0", name="movement"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    family_id: Mapped[str] = mapped_column(index=True)
    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"))
    # The vault whose coins it spends; of a forward, the vault that it pays.
    vault_id: Mapped[str] = mapped_column(ForeignKey("vaults.id"))
    # Of a forward, the key of the profile that pays it.
    profile_key_id: Mapped[str | None] = mapped_column(ForeignKey("keys.id"))
    tx_type: Mapped[str]
    status: Mapped[str]
    created_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    # The name of the program that proposed it for them.
    created_by_program: Mapped[str | None]
    description: Mapped[str | None]
    psbt: Mapped[bytes]
    txid_expected: Mapped[str]
    recipients: Mapped[list[str]]
    amounts_sats: Mapped[list[int]]
    fee_sats: Mapped[int]
    fee_rate_sat_per_kvb: Mapped[int]
    op_return_hex: Mapped[str | None]
    contract_ids: Mapped[list[str]]
    m: Mapped[int]
    n: Mapped[int]
    # The amount that leaves the vault, the fee included: it counts for the limits.
    movement_sats: Mapped[int]
    # Whether it counts for its proposer's role: minting and burning count for the vault alone.
    counts_for_role: Mapped[bool] = mapped_column(default=True)
    # Whether it sends its coins whole, without change: a bump takes the fee out of the amount.
    sweeps: Mapped[bool] = mapped_column(default=False)
    final_tx: Mapped[bytes | None]
    txid: Mapped[str | None]
    block_hash: Mapped[str | None]
    block_height: Mapped[int | None]
    failure_code: Mapped[str | None]
    failure_reason: Mapped[str | None]
    # What the vault's screening says of it (`proposals.screening`); null where it is not screened.
    screening: Mapped[str | None]
    screening_until: Mapped[datetime | None]
    screening_reason: Mapped[str | None]
    # What the watcher found last (`proposals.lifecycle`).
    trouble: Mapped[str | None]
    trouble_txid: Mapped[str | None]
    trouble_words: Mapped[str | None]
    trouble_since: Mapped[datetime | None]
    # The trouble of the last webhook event; null where that said that it has ended.
    told_trouble: Mapped[str | None]
    replaces_id: Mapped[str | None] = mapped_column(ForeignKey("proposals.id"))
    replaced_by_id: Mapped[str | None] = mapped_column(ForeignKey("proposals.id"))
    # Cancelled after signatures were released: its coins stay locked (ADR 15).
    keeps_coins: Mapped[bool] = mapped_column(default=False)
    # Signatures by lost keys: the platform no longer counts them, but they stay valid.
    withdrawn_signatures: Mapped[int] = mapped_column(default=0)
    expires_at: Mapped[datetime]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class ProposalInputRow(Base):
    """A coin that a proposal spends. Kept after the proposal has ended and its lock is gone."""

    __table_args__ = (Index(None, "txid", "vout"),)

    proposal_id: Mapped[str] = mapped_column(ForeignKey("proposals.id"), primary_key=True)
    input_index: Mapped[int] = mapped_column(primary_key=True)
    txid: Mapped[str]
    vout: Mapped[int]
    amount_sats: Mapped[int]
    branch: Mapped[int]
    address_index: Mapped[int]


class CoinLockRow(Base):
    """A lock of one coin by one family: the primary key refuses a second one (P16).

    ``vault_id`` and ``held_sats`` are copied from the coin (`vaults.stored`), so that an index
    gives a vault's locked sum. ``held_sats`` is 0 while the coin is spent or gone.
    """

    __table_args__ = (Index("ix_coin_locks_held", "vault_id", "held_sats", **only_where(HELD)),)

    chain: Mapped[str] = mapped_column(primary_key=True)
    txid: Mapped[str] = mapped_column(primary_key=True)
    vout: Mapped[int] = mapped_column(primary_key=True)
    family_id: Mapped[str] = mapped_column(index=True)
    vault_id: Mapped[str | None] = mapped_column(ForeignKey("vaults.id"))
    held_sats: Mapped[int] = mapped_column(default=0)


class DecisionRow(Base):
    """A signer's decision on a proposal. ``is_complete``: it is an approval, and every input that needs this
    key has its signature. ``role_id``: the role that they had then, which may be deleted since.
    """

    __table_args__ = (CheckConstraint("decision IN ('approve', 'reject')", name="decision"),)

    proposal_id: Mapped[str] = mapped_column(ForeignKey("proposals.id"), primary_key=True)
    key_id: Mapped[str] = mapped_column(ForeignKey("keys.id"), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    role_id: Mapped[int]
    decision: Mapped[str]
    is_complete: Mapped[bool]
    reason: Mapped[str | None]
    decided_at: Mapped[datetime]


class SignatureRow(Base):
    """A verified partial signature (DER and its sighash byte) on one input."""

    __table_args__ = (
        ForeignKeyConstraint(
            ["proposal_id", "input_index"], ["proposal_inputs.proposal_id", "proposal_inputs.input_index"]
        ),
    )

    proposal_id: Mapped[str] = mapped_column(primary_key=True)
    input_index: Mapped[int] = mapped_column(primary_key=True)
    public_key: Mapped[bytes] = mapped_column(primary_key=True)
    key_id: Mapped[str] = mapped_column(ForeignKey("keys.id"))
    signature: Mapped[bytes]
    received_at: Mapped[datetime]
