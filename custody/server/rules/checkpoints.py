"""Signed checkpoints: a file outside the database that states each audit chain's length and last hash.

One line for each checkpoint, in canonical JSON (RFC 8785; the names are ASCII). It names the chains that grew
since the line before, carries that line's SHA-256, and is signed by BIP-340 over a tagged hash of itself
without the signature.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from custody.server.rules.audit import AttestedHash
from multisig import secp256k1
from multisig.canonical_json import MAX_INTEGER, canonical_json

TAG: Final = b"custody/audit-checkpoint"
NO_LINE: Final = "0" * 64

Hex32 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Hex64 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{128}$")]
ChainId = Annotated[str, StringConstraints(pattern=r"^(platform|(organisation|workspace):[1-9][0-9]{0,18})$")]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Head(_Strict):
    """Where a chain ends: ``hash`` is the last row's."""

    size: Annotated[int, Field(ge=1, le=MAX_INTEGER)]
    hash: Hex32


class Checkpoint(_Strict):
    """A line. ``previous`` is the SHA-256 of the line before, without its line feed; ``public_key`` is
    x-only.
    """

    version: Literal[1] = 1
    number: Annotated[int, Field(ge=1, le=MAX_INTEGER)]
    previous: Hex32
    made_at: Annotated[str, StringConstraints(max_length=40)]
    heads: dict[ChainId, Head]
    public_key: Hex32
    signature: Hex64 = "0" * 128

    @property
    def line(self) -> bytes:
        return canonical_json(self.model_dump())

    @property
    def message(self) -> bytes:
        """What is signed: the tagged hash (BIP-340) of the line without its signature."""
        tag = sha256(TAG).digest()
        return sha256(tag + tag + canonical_json(self.model_dump(exclude={"signature"}))).digest()

    @property
    def digest(self) -> str:
        """The SHA-256 of the line, in hex."""
        return sha256(self.line).hexdigest()

    @property
    def name(self) -> str:
        return f"checkpoint {self.number} of {self.made_at}"

    def signed(self, secret: bytes, aux: bytes) -> "Checkpoint":
        signature = secp256k1.sign_schnorr(secret, self.message, aux)
        return self.model_copy(update={"signature": signature.hex()})

    def is_signed(self) -> bool:
        key, signature = bytes.fromhex(self.public_key), bytes.fromhex(self.signature)
        return secp256k1.verify_schnorr(key, self.message, signature)


def public_key_of(secret: bytes) -> str:
    """The x-only public key that a checkpoint's secret signs for, in hex."""
    return secp256k1.x_only_public_key_of(secret).hex()


@dataclass
class CheckpointSeries:
    """The state after the last line of a checkpoint file, as writing the next line needs it.

    ``id`` is the digest of the first line; it identifies the file. ``size``: the bytes of the lines so far.
    ``fault``: the first line that is wrong, counted from 1, and how.
    """

    id: str = ""
    number: int = 0
    last_digest: str = NO_LINE
    heads: dict[str, Head] = field(default_factory=dict)
    size: int = 0
    fault: tuple[int, str] | None = None

    def add(self, checkpoint: Checkpoint) -> None:
        self.last_digest = checkpoint.digest
        self.id = self.id or self.last_digest
        self.number = checkpoint.number
        self.heads |= checkpoint.heads
        self.size += len(checkpoint.line) + 1


@dataclass
class CheckpointHistory(CheckpointSeries):
    """A whole file: the digest of every line, and what the chains' rows must hash to, by position."""

    digests: list[str] = field(default_factory=list)
    marks: dict[str, dict[int, AttestedHash]] = field(default_factory=dict)

    def add(self, checkpoint: Checkpoint) -> None:
        super().add(checkpoint)
        self.digests.append(self.last_digest)
        for chain_id, head in checkpoint.heads.items():
            mark = AttestedHash(bytes.fromhex(head.hash), checkpoint.name)
            self.marks.setdefault(chain_id, {})[head.size] = mark


AnySeries = TypeVar("AnySeries", bound=CheckpointSeries)


def read_into(series: AnySeries, lines: Iterable[bytes], trusted: frozenset[str] | None = None) -> AnySeries:
    """Reads up to the first line that is wrong. ``trusted``: the public keys that may sign; None asks for no
    signature.

    A last line without a line feed is ignored: a power cut leaves one.
    """
    for number, line in enumerate(lines, start=1):
        if not line.endswith(b"\n"):
            break
        checkpoint = _read(line[:-1])
        sentence = _NO_CHECKPOINT if checkpoint is None else _fault_of(checkpoint, series, trusted)
        if checkpoint is None or sentence is not None:
            series.fault = number, sentence or _NO_CHECKPOINT
            break
        series.add(checkpoint)
    return series


def read_file(path: Path, trusted: frozenset[str]) -> CheckpointHistory:
    """Raises OSError."""
    with path.open("rb") as file:
        return read_into(CheckpointHistory(), file, trusted)


def marks_of(files: Iterable[CheckpointHistory]) -> dict[str, dict[int, AttestedHash]]:
    """By chain and position, the hashes that the rows must have according to all files together."""
    marks: dict[str, dict[int, AttestedHash]] = {}
    for history in files:
        for chain_id, named in history.marks.items():
            known = marks.setdefault(chain_id, {})
            for position, mark in named.items():
                known[position] = agreed(known.get(position), mark)
    return marks


def agreed(one: AttestedHash | None, other: AttestedHash) -> AttestedHash:
    """Two marks that contradict each other make one that no row meets."""
    if one is None or one.event_hash == other.event_hash:
        return other
    return AttestedHash(b"", f"{one.source} or {other.source}")


_NO_CHECKPOINT = "is not a checkpoint"


def _read(line: bytes) -> Checkpoint | None:
    try:
        checkpoint = Checkpoint.model_validate_json(line)
    except ValidationError:
        return None
    return checkpoint if checkpoint.line == line else None


def _fault_of(checkpoint: Checkpoint, series: CheckpointSeries, trusted: frozenset[str] | None) -> str | None:
    if trusted is not None:
        if checkpoint.public_key not in trusted:
            return f"is signed by {checkpoint.public_key}, which is not a trusted key"
        if not checkpoint.is_signed():
            return "was changed: its signature is not valid"
    if (checkpoint.number, checkpoint.previous) != (series.number + 1, series.last_digest):
        return "does not follow the line before it: lines were removed, added or put in another order"
    for chain_id, head in checkpoint.heads.items():
        before = series.heads.get(chain_id)
        if before is not None and head.size <= before.size:
            return f"names {head.size} rows of {chain_id} after {before.size}"
    return None
