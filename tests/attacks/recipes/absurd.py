"""S23: malformed PSBTs, by rule, and a well-formed one that no node would relay."""

from dataclasses import dataclass

from tests.attacks.recipes.coins import COIN_TWICE
from tests.attacks.recipes.outputs import locked
from tests.attacks.recipes.scene import Recipe

INVALID, TOO_LARGE, ANOTHER = "invalid-psbt", "psbt-too-large", "another"
MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Damage:
    """``outcome``: the parser's code, None where it is read as if nothing were there. ``off`` and ``then`` as
    in a recipe: what stands without the guard, None where nothing does,
    "another" where it would be read as what it is not.
    """

    name: str
    rule: str
    amount: int = 0
    outcome: str | None = INVALID
    off: str | None = None
    then: str | None = None


DAMAGES = (
    Damage("an unknown field of a hundred bytes", "padded", 100, None),
    Damage("ninety unknown fields beside a coin", "many-fields", 90, None),
    Damage("no bytes at all", "cut", 0),
    Damage("the magic and nothing else", "cut", 5),
    Damage("the last byte is missing", "truncated", 1, off="bytes-enough"),
    Damage("half of it is missing", "cut", 900, off="bytes-enough", then=INVALID),
    Damage("a byte behind it", "followed", 1, off="nothing-behind"),
    Damage("three mebibytes", "padded", 3 * MEBIBYTE, TOO_LARGE, "size-limits"),
    Damage("a thousand fields beside a coin", "many-fields", 1_000, TOO_LARGE, "size-limits"),
    Damage("a key of four thousand mebibytes is announced", "announced", 4_000 * MEBIBYTE),
    Damage("a key of half of what can be counted is announced", "announced", 1 << 63),
    Damage("the transaction twice, and they differ", "repeated", 0, off="keys-once", then=ANOTHER),
    Damage("the transaction twice, the same", "again", 0, off="keys-once"),
    Damage("a coin's transaction twice, the same", "again", 1, off="keys-once"),
    Damage("a length in a longer form than needed", "long-form", off="shortest-lengths"),
    Damage("version 2", "version", 2, off="versions"),
    Damage("a version 0 that says so", "version", 0, None),
    Damage("a field of version 2 that replaces an amount", "of-version-2", off="field-shapes"),
    Damage("an account key three hundred steps deep", "deep", 300, off="field-shapes", then=INVALID),
    Damage("an output without its map", "without-maps", 1, off="bytes-enough", then=ANOTHER),
)  # fmt: skip

S23 = (
    Recipe(name="a sound one", honest=True),
    Recipe(
        name="a version that no node passes on",
        psbt=lambda s: locked(s, version=9),
        findings=(("non-standard-version", "transaction"),),
        off="severity:non-standard-version",
    ),
    COIN_TWICE,
)
