"""Receipts: each answer that is about a workspace says where its audit log ends, and a client remembers it.

A log that was cut behind a client's back is shorter than what it was told, or another one. The client
compares each answer with what it knew when it asked; ``custody audit verify --receipts FILE`` compares the
whole log.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Self

HEADER: Final = "X-Audit-Head"
_FORM: Final = re.compile(r"((?:organisation|workspace):[1-9][0-9]{0,18}) ([1-9][0-9]{0,15}) ([0-9a-f]{64})")
# One a workspace: a client that is told of more remembers the first ones.
MAX_CHAINS: Final = 1_000
_MAX_FILE_BYTES: Final = MAX_CHAINS * 128


class NoReceipts(ValueError):
    """A file that holds something else."""


@dataclass(frozen=True)
class Receipt:
    """``size``: how many rows the chain has; ``hash``: what the last one hashes to, in hex."""

    chain: str
    size: int
    hash: str

    def __str__(self) -> str:
        return f"{self.chain} {self.size} {self.hash}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """None for what is no receipt."""
        found = _FORM.fullmatch(text)
        return None if found is None else cls(found[1], int(found[2]), found[3])


@dataclass(frozen=True)
class Doubt:
    """What the platform said does not go on from what it said before."""

    known: Receipt
    told: Receipt

    def __str__(self) -> str:
        if self.told.size < self.known.size:
            how = f"ends with row {self.told.size}, and had {self.known.size} rows before"
        else:
            how = f"has another row {self.told.size} than before"
        return f"the platform's audit log of {self.known.chain} {how}: it was cut or rewritten"


def _ignore(_what: object) -> None:
    """Nobody asked to be told."""


class Receipts:
    """What one client was told. ``on_new`` is called with each later one, ``on_doubt`` with what is wrong."""

    def __init__(
        self,
        known: Iterable[Receipt] = (),
        *,
        on_new: Callable[[Receipt], None] = _ignore,
        on_doubt: Callable[[Doubt], None] = _ignore,
    ) -> None:
        # Never changed in its place: whoever asks the platform keeps what was known then.
        self._known: Mapping[str, Receipt] = {receipt.chain: receipt for receipt in known}
        self._on_new = on_new
        self._on_doubt = on_doubt

    @classmethod
    def in_file(cls, path: Path, on_doubt: Callable[[Doubt], None] = _ignore) -> Self:
        """Kept in a file, for the next time. A disk that is full later fails no call: what could not be kept
        is known as long as the client lives. Raises OSError, NoReceipts.
        """
        receipts = cls(read_receipts(path).values() if path.exists() else (), on_doubt=on_doubt)
        receipts._on_new = partial(_keep, path, receipts)
        return receipts

    @property
    def known(self) -> Mapping[str, Receipt]:
        """The newest of each chain."""
        return self._known

    def hear(self, text: str, asked_with: Mapping[str, Receipt]) -> None:
        """An answer's header. ``asked_with``: what was known when the request was sent: of answers that pass
        each other, the older one is no reason for doubt.
        """
        told = Receipt.parse(text)
        if told is None:
            return
        before, newest = asked_with.get(told.chain), self._known.get(told.chain)
        if before is not None and not _goes_on(before, told):
            self._on_doubt(Doubt(before, told))
        elif (newest is None and len(self._known) < MAX_CHAINS) or (newest and told.size > newest.size):
            self._known = {**self._known, told.chain: told}
            self._on_new(told)


def _keep(path: Path, receipts: Receipts, _new: Receipt) -> None:
    with suppress(OSError):
        write_receipts(path, receipts.known.values())


def _goes_on(before: Receipt, told: Receipt) -> bool:
    return told.size > before.size or told == before


def read_receipts(path: Path) -> dict[str, Receipt]:
    """By chain. Raises OSError, NoReceipts."""
    with path.open("rb") as file:
        lines = file.read(_MAX_FILE_BYTES + 1).decode(errors="replace").splitlines()
    found = [receipt for receipt in map(Receipt.parse, lines) if receipt is not None]
    if len(found) != len(lines):
        raise NoReceipts(f"{path}: line {len(found) + 1} or another one is no receipt")
    return {receipt.chain: receipt for receipt in found}


def write_receipts(path: Path, receipts: Iterable[Receipt]) -> None:
    """Whole or not at all, readable by its owner alone. Raises OSError."""
    temporary = path.with_name(path.name + ".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.writelines(f"{receipt}\n" for receipt in receipts)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
