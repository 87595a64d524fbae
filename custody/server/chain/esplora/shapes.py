"""The shapes of an explorer's JSON, of which only ids, places and counts are read: amounts and scripts never
are.

Source: API.md of Esplora, and electrs' rest.rs for what it leaves open.
"""

from typing import Annotated, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from custody.server.errors import ChainUnavailable

Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, lt=2**63)]
Height = Annotated[int, Field(ge=0, lt=2**31)]
Word = Annotated[int, Field(ge=0, lt=2**32)]
# A block has fewer than 2^17 transactions.
MAX_PROOF_DEPTH = 17


class _Shape(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class ConfirmationStatus(_Shape):
    """Where a transaction is. A confirmed one names its block whole."""

    confirmed: bool
    block_height: Height | None = None
    block_hash: Hash | None = None
    block_time: Count | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        facts = (self.block_height, self.block_hash, self.block_time)
        if self.confirmed and None in facts:
            raise ValueError("confirmed in no block")
        return self


class ScriptHistoryEntry(_Shape):
    """One line of a script's history."""

    txid: Hash
    status: ConfirmationStatus


class Stats(_Shape):
    """How many transactions paid a script or spent from it."""

    tx_count: Count


class ScriptStats(_Shape):
    chain_stats: Stats
    mempool_stats: Stats


class Outspend(_Shape):
    """Who spends an output."""

    spent: bool
    txid: Hash | None = None


class MerkleProof(_Shape):
    """A merkle branch in Electrum's form: hashes in display order, from the leaf up."""

    block_height: Height
    merkle: Annotated[tuple[Hash, ...], Field(max_length=MAX_PROOF_DEPTH)]
    pos: Count


class Block(_Shape):
    """A block's header, field by field: they must hash to the id. Some explorers write the version with its
    sign.
    """

    id: Hash
    height: Height
    version: Annotated[int, Field(ge=-(2**31), lt=2**32)]
    timestamp: Word
    bits: Word
    nonce: Word
    merkle_root: Hash
    previousblockhash: Hash | None = None


Shape = TypeVar("Shape")


def read(body: bytes, shape: type[Shape]) -> Shape:
    """Raises ChainUnavailable for JSON of another shape, or none."""
    try:
        return TypeAdapter(shape).validate_json(body)
    except ValidationError as error:
        raise ChainUnavailable("The explorer's answer is not of Esplora's shape.") from error


def read_hash(body: bytes) -> str:
    """A hash as plain text."""
    return read(b'"' + body.strip() + b'"', Hash)
