"""Asset tokens: members' tokens and calls, and the index of the chain (CPT-1, docs/understand/tokens.md).

The status of a contract or a call is not stored: it follows from its proposals and the index.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from custody.server.store.models.base import Base


class ContractRow(Base):
    """A token that a member created. ``bytecode`` is the canonical JSON that its deployment commits to.


    ``deploy_family_id``: the first proposal of its deployment. The contract's id on chain is the txid of the
    one that confirmed.
    """

    __table_args__ = (
        Index(None, "vault_id"),
        Index(None, "bytecode_hash"),
        CheckConstraint("decimals >= 0 AND decimals <= 18", name="decimals"),
    )

    uid: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"), index=True)
    vault_id: Mapped[str] = mapped_column(ForeignKey("vaults.id"))
    chain: Mapped[str]
    name: Mapped[str]
    ticker: Mapped[str]
    icon: Mapped[str]
    decimals: Mapped[int]
    total_supply: Mapped[int]
    max_supply: Mapped[int]
    whitelist_enabled: Mapped[bool]
    bytecode: Mapped[bytes]
    bytecode_hash: Mapped[bytes]
    deploy_family_id: Mapped[str] = mapped_column(ForeignKey("proposals.id"), unique=True)
    created_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    # The status of the last webhook event.
    told_status: Mapped[str] = mapped_column(default="PENDING")
    created_at: Mapped[datetime]


class ContractCallRow(Base):
    """A call that a member made. ``amount`` in raw units and ``address_script`` where the function takes
    them.
    """

    __table_args__ = (Index(None, "contract_uid", "uid"), Index(None, "vault_id", "uid"))

    uid: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    contract_uid: Mapped[int] = mapped_column(ForeignKey("contracts.uid"))
    workspace_id: Mapped[int] = mapped_column(ForeignKey("workspaces.id"))
    # The vault that calls: an output script of its first address is the caller on chain.
    vault_id: Mapped[str] = mapped_column(ForeignKey("vaults.id"))
    function_name: Mapped[str]
    args: Mapped[list[dict[str, Any]]]
    amount: Mapped[int | None]
    address_script: Mapped[bytes | None]
    family_id: Mapped[str] = mapped_column(ForeignKey("proposals.id"), unique=True)
    created_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    # The status of the last webhook event.
    told_status: Mapped[str] = mapped_column(default="PENDING")
    created_at: Mapped[datetime]


class TokenBlockRow(Base):
    """A block that the indexer has read. ``mined_at`` as its header says; ``state`` is the hash of all
    tokens' state after it.
    """

    chain: Mapped[str] = mapped_column(primary_key=True)
    height: Mapped[int] = mapped_column(primary_key=True)
    block_hash: Mapped[str]
    mined_at: Mapped[datetime]
    state: Mapped[bytes]


class TokenTransactionRow(Base):
    """A mined transaction with a token's data. ``failure``: why it had no effect. ``contract_id`` is null
    where the data cannot be read.

    Deployments that no member of this platform proposed are left out.
    """

    __table_args__ = (Index(None, "chain", "txid"),)

    chain: Mapped[str] = mapped_column(primary_key=True)
    height: Mapped[int] = mapped_column(primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    txid: Mapped[str]
    contract_id: Mapped[str | None]
    failure: Mapped[str | None]


class TokenEffectRow(Base):
    """One cell that a block changed, with its value before: a reorganisation undoes them from the last to the
    first.
    """

    __table_args__ = (
        # What a holder received and gave away, of all tokens and of one, in the chain's order.
        Index("ix_token_effects_of_holder", "chain", "holder", "cell", "height", "sequence"),
        Index("ix_token_effects_of_token", "chain", "holder", "cell", "contract_id", "height", "sequence"),
    )

    chain: Mapped[str] = mapped_column(primary_key=True)
    height: Mapped[int] = mapped_column(primary_key=True)
    sequence: Mapped[int] = mapped_column(primary_key=True)
    txid: Mapped[str]
    # ``deploy``, or what was called.
    function: Mapped[str]
    contract_id: Mapped[str]
    cell: Mapped[int]
    holder: Mapped[bytes]
    number_before: Mapped[int | None]
    data_before: Mapped[bytes | None]
    number_after: Mapped[int | None]
    data_after: Mapped[bytes | None]


class TokenCellRow(Base):
    """The tokens' state after the last block that was read: a number or data. An absent cell holds
    nothing.
    """

    __table_args__ = (Index(None, "chain", "holder", "cell"),)

    chain: Mapped[str] = mapped_column(primary_key=True)
    contract_id: Mapped[str] = mapped_column(primary_key=True)
    cell: Mapped[int] = mapped_column(primary_key=True)
    holder: Mapped[bytes] = mapped_column(primary_key=True)
    number: Mapped[int | None]
    data: Mapped[bytes | None]
