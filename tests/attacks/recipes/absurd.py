"""S23: malformed PSBTs, by rule, and a well-formed one that no node would relay."""

from dataclasses import dataclass

from tests.attacks.recipes.coins import COIN_TWICE
from tests.attacks.recipes.outputs import locked
from tests.attacks.recipes.scene import Named, Recipe

INVALID, TOO_LARGE = "invalid-psbt", "psbt-too-large"
MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Damage(Named):
    """``outcome``: the parser's code, None where it is read as if nothing were there."""

    rule: str
    amount: int = 0
    outcome: str | None = INVALID


DAMAGES = (
    Damage("an unknown field of a hundred bytes", "padded", 100, None),
    Damage("ninety unknown fields beside a coin", "many-fields", 90, None),
    Damage("no bytes at all", "cut", 0),
    Damage("the magic and nothing else", "cut", 5),
    Damage("the last byte is missing", "truncated", 1),
    Damage("half of it is missing", "cut", 900),
    Damage("a byte behind it", "followed", 1),
    Damage("three mebibytes", "padded", 3 * MEBIBYTE, TOO_LARGE),
    Damage("a thousand fields beside a coin", "many-fields", 1_000, TOO_LARGE),
    Damage("a key of four thousand mebibytes is announced", "announced", 4_000 * MEBIBYTE),
    Damage("a key of half of what can be counted is announced", "announced", 1 << 63),
    Damage("the transaction twice, and they differ", "repeated", 0),
    Damage("the transaction twice, the same", "again", 0),
    Damage("a coin's transaction twice, the same", "again", 1),
    Damage("a length in a longer form than needed", "long-form"),
    Damage("version 2", "version", 2),
    Damage("a version 0 that says so", "version", 0, None),
    Damage("a field of version 2 that replaces an amount", "of-version-2"),
    Damage("an account key three hundred steps deep", "deep", 300),
    Damage("an output without its map", "without-maps", 1),
)  # fmt: skip

S23 = (
    Recipe(name="a sound one", honest=True),
    Recipe(
        name="a version that no node passes on",
        psbt=lambda s: locked(s, version=9),
        findings=(("non-standard-version", "transaction"),),
    ),
    COIN_TWICE,
)
