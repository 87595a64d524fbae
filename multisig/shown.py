"""How values read in logs and in the interpreter: as the field writes them, and bytes as hex."""

from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from typing import Any

# A script, a hash and a signature stand whole; a transaction or a bytecode does not.
MOST_BYTES = 80
MOST_MEMBERS = 20


class AsWritten:
    """``Fingerprint('9f441a36')``: the text that `str` gives, and that the type's own parser reads."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class ByMember:
    """A dataclass by its members: ``TxOut(amount=50000, script_pubkey='00148d0d…')``.

    Those that its fields keep out of `repr` stay out.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        told = (f"{one.name}={_told(getattr(self, one.name))}" for one in fields(self) if one.repr)  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(told)})"


def _told(value: Any) -> str:
    match value:
        case bytes():
            whole = len(value) <= MOST_BYTES
            return repr(value.hex() if whole else f"{value[:MOST_BYTES].hex()}… ({len(value)} bytes)")
        case str() if isinstance(value, Enum):
            return repr(str(value))
        case tuple():
            return f"({_joined([_told(one) for one in value])})"
        case Mapping():
            return f"{{{_joined([f'{_told(name)}: {_told(one)}' for name, one in value.items()])}}}"
        case _:
            return repr(value)


def _joined(members: list[str]) -> str:
    more = [f"… {len(members) - MOST_MEMBERS} more"] if len(members) > MOST_MEMBERS else []
    return ", ".join([*members[:MOST_MEMBERS], *more])
