"""S23: malformed PSBTs, and a well-formed one that no node would relay."""

from collections.abc import Callable
from dataclasses import dataclass

from multisig.wire import compact_size, with_length
from tests.attacks.recipes.coins import COIN_TWICE
from tests.attacks.recipes.outputs import locked
from tests.attacks.recipes.scene import Named, Recipe

INVALID, TOO_LARGE = "invalid-psbt", "psbt-too-large"
MAGIC = 5
MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Damage(Named):
    """``outcome``: the parser's code, None where it is read as if nothing were there."""

    made: Callable[[bytes], bytes]
    outcome: str | None = INVALID


def _announced(psbt: bytes) -> bytes:
    """A first key of an absurd length."""
    return psbt[:MAGIC] + compact_size(4_000 * MEBIBYTE) + psbt[MAGIC + 1 :]


def _version_0(psbt: bytes) -> bytes:
    return psbt[:MAGIC] + with_length(b"\xfb") + with_length(bytes(4)) + psbt[MAGIC:]


def _padded(size: int, count: int = 1) -> Callable[[bytes], bytes]:
    """So many unknown fields of that size beside the last output, made here and not kept in files."""
    fields = (with_length(b"\xfc" + number.to_bytes(4)) + with_length(bytes(size)) for number in range(count))
    more = b"".join(fields)
    return lambda psbt: psbt[:-1] + more + psbt[-1:]


# What is malformed in a field or a map: tests/multisig/test_psbt.py.
DAMAGES = (
    Damage("an unknown field of a hundred bytes", _padded(100), None),
    Damage("ninety unknown fields beside an output", _padded(0, 90), None),
    Damage("no bytes at all", lambda _psbt: b""),
    Damage("half of it is missing", lambda psbt: psbt[:900]),
    Damage("three mebibytes", _padded(3 * MEBIBYTE), TOO_LARGE),
    Damage("a thousand fields beside an output", _padded(0, 1_000), TOO_LARGE),
    Damage("a key of four thousand mebibytes is announced", _announced),
    Damage("a version 0 that says so", _version_0, None),
)

S23 = (
    Recipe(name="a sound one", honest=True),
    Recipe(
        name="a version that no node passes on",
        psbt=lambda s: locked(s, version=9),
        findings=(("non-standard-version", "transaction"),),
    ),
    COIN_TWICE,
)
