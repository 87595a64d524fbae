"""Vaults, their signers, and what the chain holds for them."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from custody.server.store.models.base import Base


class Vault(Base):
    """``network`` as the API says it, ``chain`` as it is. Amounts in satoshis. ``next_*_index`` is the next unused."""

    __tablename__ = "vaults"
    __table_args__ = (
        UniqueConstraint("workspace_id", "name"),
        CheckConstraint("m >= 1 AND m <= n AND n <= 15", name="quorum"),
        CheckConstraint("limit_sats >= 0", name="limit"),
        CheckConstraint("cycle_period IN ('W', 'M')", name="cycle_period"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"))
    created_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    name: Mapped[str]
    network: Mapped[str]
    chain: Mapped[str]
    m: Mapped[int]
    n: Mapped[int]
    script_type: Mapped[str]
    descriptor: Mapped[str] = mapped_column(unique=True)
    address: Mapped[str] = mapped_column(unique=True)
    witness_script_hex: Mapped[str]
    limit_sats: Mapped[int]
    cycle_period: Mapped[str]
    cycle_day: Mapped[int]
    # Whether the limit bounds the sum of a cycle, and not just each movement: an operator's switch.
    is_per_cycle: Mapped[bool] = mapped_column(default=False)
    next_receive_index: Mapped[int]
    next_change_index: Mapped[int]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class VaultSigner(Base):
    """A place in a vault's quorum, fixed for ever. ``key_index`` is the cosigner's place in the descriptor."""

    __tablename__ = "vault_signers"
    __table_args__ = (UniqueConstraint("vault_id", "user_id"),)

    vault_id: Mapped[str] = mapped_column(ForeignKey("vaults.id"), primary_key=True)
    key_index: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    key_id: Mapped[str] = mapped_column(ForeignKey("keys.id"), index=True)
    key_account_id: Mapped[int] = mapped_column(ForeignKey("key_accounts.id"), unique=True)
    fingerprint: Mapped[str]


class WatchedScript(Base):
    """A script that the chain is watched for: ``branch`` 0 receives, 1 is change (BIP-44's fourth level).

    ``vault_id`` is null for a script of a member's profile: whose it is, `Profile` says, for one device may be registered again.
    """

    __tablename__ = "watched_scripts"
    __table_args__ = (UniqueConstraint("vault_id", "branch", "address_index"),)

    chain: Mapped[str] = mapped_column(primary_key=True)
    script_pubkey: Mapped[bytes] = mapped_column(primary_key=True)
    vault_id: Mapped[str | None] = mapped_column(ForeignKey("vaults.id"))
    branch: Mapped[int]
    address_index: Mapped[int]


class ChainTransaction(Base):
    """The bytes of a transaction that paid a vault: every input of ours carries its previous transaction."""

    __tablename__ = "chain_transactions"

    chain: Mapped[str] = mapped_column(primary_key=True)
    txid: Mapped[str] = mapped_column(primary_key=True)
    raw: Mapped[bytes]


class ChainCoin(Base):
    """A coin as the chain shows it. ``height`` is null while unconfirmed, ``spent_by`` while unspent, ``vault_id`` where it
    is in a member's profile.
    """

    __tablename__ = "chain_coins"

    chain: Mapped[str] = mapped_column(primary_key=True)
    txid: Mapped[str] = mapped_column(primary_key=True)
    vout: Mapped[int] = mapped_column(primary_key=True)
    vault_id: Mapped[str | None] = mapped_column(ForeignKey("vaults.id"))
    branch: Mapped[int]
    address_index: Mapped[int]
    amount_sats: Mapped[int]
    script_pubkey: Mapped[bytes]
    is_coinbase: Mapped[bool]
    height: Mapped[int | None]
    block_hash: Mapped[str | None]
    spent_by: Mapped[str | None]
    spent_height: Mapped[int | None]
    first_seen_at: Mapped[datetime]


class ChainBlock(Base):
    """The chain as far as it was read: a reorganisation is found by comparing the hash at each height."""

    __tablename__ = "chain_blocks"

    chain: Mapped[str] = mapped_column(primary_key=True)
    height: Mapped[int] = mapped_column(primary_key=True)
    block_hash: Mapped[str]
    seen_at: Mapped[datetime]


Index(
    "ix_chain_coins_profiles",
    ChainCoin.chain,
    ChainCoin.script_pubkey,
    sqlite_where=text("vault_id IS NULL"),
    postgresql_where=text("vault_id IS NULL"),
)
# A vault's largest coins are read without the rest, and without a look at unconfirmed ones, however many a stranger made.
Index(
    "ix_chain_coins_unspent",
    ChainCoin.vault_id,
    ChainCoin.amount_sats,
    ChainCoin.height,
    sqlite_where=text("spent_by IS NULL"),
    postgresql_where=text("spent_by IS NULL"),
)
# Which of a vault's change addresses were used.
Index(
    "ix_chain_coins_change",
    ChainCoin.vault_id,
    ChainCoin.address_index,
    sqlite_where=text("branch = 1"),
    postgresql_where=text("branch = 1"),
)
# What a new block decides about: the coins above the last shared block, and those that were spent above it.
Index("ix_chain_coins_height", ChainCoin.chain, ChainCoin.height)
Index(
    "ix_chain_coins_spent",
    ChainCoin.chain,
    ChainCoin.spent_height,
    sqlite_where=text("spent_by IS NOT NULL"),
    postgresql_where=text("spent_by IS NOT NULL"),
)
