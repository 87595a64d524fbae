"""`repr` for logs and the interpreter: values in their usual text form, bytes as hex."""

from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from typing import Any

# Enough for a script, a hash or a signature; a transaction or a bytecode is cut.
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
        members = (f"{one.name}={_shown(getattr(self, one.name))}" for one in fields(self) if one.repr)  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(members)})"


def _shown(value: Any) -> str:
    match value:
        case bytes():
            whole = len(value) <= MOST_BYTES
            return repr(value.hex() if whole else f"{value[:MOST_BYTES].hex()}… ({len(value)} bytes)")
        case str() if isinstance(value, Enum):
            return repr(str(value))
        case tuple():
            return f"({_joined([_shown(one) for one in value])})"
        case Mapping():
            return f"{{{_joined([f'{_shown(name)}: {_shown(one)}' for name, one in value.items()])}}}"
        case _:
            return repr(value)


def _joined(members: list[str]) -> str:
    more = [f"… {len(members) - MOST_MEMBERS} more"] if len(members) > MOST_MEMBERS else []
    return ", ".join([*members[:MOST_MEMBERS], *more])
