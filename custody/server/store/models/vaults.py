"""Registered keys, the vaults that they sign for, the vaults' coins on chain, and their movements: what each
transaction adds and takes, with the balance after it. Of keys only public data.
"""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from custody.server.store.models.base import Base, only_where

_ACTIVE = "status = 'active'"
_TAKEN = "vault_id IS NOT NULL"
# A coin that is unconfirmed, or whose spend is. A query must have exactly this text to use the index.
MOVING = "(spent_height IS NULL AND (height IS NULL OR spent_by IS NOT NULL))"


class KeyRow(Base):
    """One device of one person on one network.

    ``xpub`` is BIP-48 account 0; ``derivation_base_path`` is written ``m/48h/1h/0h/2h``. A revoked key
    carries its ``revoked_reason`` (``superseded``, ``lost``, …), which decides what it may still approve.
    """

    __table_args__ = (
        # A member holds one active key per network, and a device belongs to one member.
        Index("uq_keys_active_user", "user_id", "network", unique=True, **only_where(_ACTIVE)),
        Index("uq_keys_active_xpub", "xpub", unique=True, **only_where(_ACTIVE)),
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
    # What the device reported at the registration, and the day on which the key was made, as its holder says
    # (YYYY-MM-DD). Null where unknown.
    maker: Mapped[str | None]
    model: Mapped[str | None]
    firmware: Mapped[str | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    # When the platform last verified a signature by the device: a challenge's, a payment's or a proof's.
    last_signed_at: Mapped[datetime]


class KeyAccountRow(Base):
    """One BIP-48 account of a key. ``vault_id`` is null until a vault takes it; a taken account is never free
    again.

    No two vaults share an account's xpub, even where a device was registered twice.
    """

    __table_args__ = (
        UniqueConstraint("key_id", "account"),
        Index("uq_key_accounts_taken_xpub", "xpub", unique=True, **only_where(_TAKEN)),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    key_id: Mapped[str] = mapped_column(ForeignKey("keys.id"))
    account: Mapped[int]
    derivation_path: Mapped[str]
    xpub: Mapped[str] = mapped_column(index=True)
    vault_id: Mapped[str | None] = mapped_column(ForeignKey("vaults.id"))


class ProfileRow(Base):
    """The member's own BIP-84 account, registered with a key. ``receive_script`` is that of its one address
    (0/0).
    """

    key_id: Mapped[str] = mapped_column(ForeignKey("keys.id"), primary_key=True)
    xpub: Mapped[str]
    derivation_base_path: Mapped[str]
    receive_script: Mapped[bytes] = mapped_column(index=True)
    created_at: Mapped[datetime]


class KeyChallengeRow(Base):
    """The text that a device signs before its key is registered: for one user, once, for ten minutes.

    ``offered_digest`` is the SHA-256 of every (path, xpub) that the registration must offer.
    """

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    network: Mapped[str]
    challenge: Mapped[str] = mapped_column(unique=True)
    offered_digest: Mapped[str]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class VaultRow(Base):
    """``network`` is the API's name, ``chain`` the actual chain. ``next_*_index``: the next unused one."""

    __table_args__ = (
        UniqueConstraint("workspace_id", "name"),
        CheckConstraint("m >= 1 AND m <= n AND n <= 15", name="quorum"),
        CheckConstraint("limit_sats >= 0", name="limit"),
        CheckConstraint("cycle_period IN ('W', 'M')", name="cycle_period"),
        CheckConstraint("replaced_by_id <> id", name="replaced"),
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
    # Whether the limit bounds the sum of a cycle, and not just each movement.
    is_per_cycle: Mapped[bool] = mapped_column(default=False)
    # It pays only addresses of the workspace's address book.
    only_address_book: Mapped[bool] = mapped_column(default=False)
    # Whether a signer may approve what they proposed.
    maker_may_approve: Mapped[bool] = mapped_column(default=True)
    # Of each of these one approval has to come (`rules.approvers`).
    approvers: Mapped[list[str]] = mapped_column(default=list)
    # The webhook whose program screens its proposals; how long that has, and what holds without its word.
    screening_webhook_id: Mapped[str | None] = mapped_column(ForeignKey("webhooks.id"))
    screening_seconds: Mapped[int] = mapped_column(default=3600)
    screening_fails_open: Mapped[bool] = mapped_column(default=False)
    frozen_at: Mapped[datetime | None]
    frozen_by: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    freeze_reason: Mapped[str | None]
    # Who asked first that it be unfrozen: another member has to agree.
    unfreeze_asked_at: Mapped[datetime | None]
    unfreeze_asked_by: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    # A vault of the same workspace, newer than this one: set once, by two people.
    replaced_by_id: Mapped[str | None] = mapped_column(ForeignKey("vaults.id"), unique=True)
    next_receive_index: Mapped[int]
    next_change_index: Mapped[int]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class VaultSignerRow(Base):
    """A signer of a vault; it never changes. ``key_index`` is the cosigner's index in the descriptor."""

    __table_args__ = (UniqueConstraint("vault_id", "user_id"),)

    vault_id: Mapped[str] = mapped_column(ForeignKey("vaults.id"), primary_key=True)
    key_index: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    key_id: Mapped[str] = mapped_column(ForeignKey("keys.id"), index=True)
    key_account_id: Mapped[int] = mapped_column(ForeignKey("key_accounts.id"), unique=True)
    fingerprint: Mapped[str]


class WatchedScriptRow(Base):
    """A script that the platform watches the chain for: ``branch`` 0 receives, 1 is change (BIP-44's fourth
    level).

    ``vault_id`` is null for a script of a member's profile. `ProfileRow` names its owner, because a device
    may be registered again.
    """

    __table_args__ = (UniqueConstraint("vault_id", "branch", "address_index"),)

    chain: Mapped[str] = mapped_column(primary_key=True)
    script_pubkey: Mapped[bytes] = mapped_column(primary_key=True)
    vault_id: Mapped[str | None] = mapped_column(ForeignKey("vaults.id"))
    branch: Mapped[int]
    address_index: Mapped[int]


class ChainTransactionRow(Base):
    """The bytes of a transaction that paid a vault: every input of ours carries its previous transaction."""

    chain: Mapped[str] = mapped_column(primary_key=True)
    txid: Mapped[str] = mapped_column(primary_key=True)
    raw: Mapped[bytes]


class ChainCoinRow(Base):
    """A coin as the chain shows it. ``height`` is null while unconfirmed, ``spent_by`` while unspent,
    ``vault_id`` where it is in a member's profile.
    """

    __table_args__ = (
        Index("ix_chain_coins_profiles", "chain", "script_pubkey", **only_where("vault_id IS NULL")),
        # A vault's largest coins, in the order of the pages.
        Index(
            "ix_chain_coins_unspent",
            "vault_id",
            "amount_sats",
            "txid",
            "vout",
            "height",
            **only_where("spent_by IS NULL"),
        ),
        # The mempool's effect on a vault's balance.
        Index("ix_chain_coins_moving", "vault_id", "height", "spent_by", "amount_sats", **only_where(MOVING)),
        # Coinbase outputs, which mature late.
        Index("ix_chain_coins_rewards", "vault_id", "height", **only_where("is_coinbase", "is_coinbase = 1")),
        # The used change addresses of a vault.
        Index("ix_chain_coins_change", "vault_id", "address_index", **only_where("branch = 1")),
        # What a new block may change: coins above the last shared block, and coins spent above it.
        Index("ix_chain_coins_height", "chain", "height"),
        Index("ix_chain_coins_spent", "chain", "spent_height", **only_where("spent_by IS NOT NULL")),
        # The coins that a transaction spends. Not partial: PostgreSQL would scan a partial index.
        Index("ix_chain_coins_spender", "chain", "spent_by"),
    )

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


class CoinAsideRow(Base):
    """A coin that no new proposal spends, by its outpoint: whatever becomes of its block, it stays set aside.
    ``until`` is null where it has no end; past it, the row counts for nothing.
    """

    __tablename__ = "coins_aside"

    chain: Mapped[str] = mapped_column(primary_key=True)
    txid: Mapped[str] = mapped_column(primary_key=True)
    vout: Mapped[int] = mapped_column(primary_key=True)
    vault_id: Mapped[str] = mapped_column(ForeignKey("vaults.id"), index=True)
    reason: Mapped[str]
    until: Mapped[datetime | None]
    set_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    set_at: Mapped[datetime]


class ChainBlockRow(Base):
    """The chain as far as it was read: a reorganisation is found by comparing the hash at each height.
    ``mined_at`` as its header says.
    """

    chain: Mapped[str] = mapped_column(primary_key=True)
    height: Mapped[int] = mapped_column(primary_key=True)
    block_hash: Mapped[str]
    mined_at: Mapped[datetime]
    seen_at: Mapped[datetime]


_UNCONFIRMED = "height IS NULL"


class MovementRow(Base):
    """One transaction, as one vault sees it. It follows from the vault's coins, and is written with them.

    ``place`` orders a block's movements of this vault, parents before children. ``balance_sats`` is the sum
    of the vault's confirmed movements up to this one. ``height``, ``place``, ``block_hash``, ``mined_at`` and
    ``balance_sats`` are null while it is unconfirmed.
    """

    __table_args__ = (
        # The ordered list; the list of one kind; the pending movements.
        Index("ix_movements_in_order", "vault_id", "height", "place"),
        Index("ix_movements_of_kind", "vault_id", "kind", "height", "place"),
        Index("ix_movements_pending", "vault_id", "first_seen_at", "txid", **only_where(_UNCONFIRMED)),
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
