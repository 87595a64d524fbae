"""F: what a platform answers that is no proposal to sign: numbers that no column holds, bodies that grow
while they are read.
"""

from dataclasses import dataclass

from tests.attacks.recipes.scene import Named

LEFT_OUT = "left-out"
WIDEST = 2**63 - 1


@dataclass(frozen=True)
class Number(Named):
    """One number of an answer, in an entry beside honest ones. ``of``: "vault", "proposal" or "workspace".

    ``outcome``: that it is left out for its number, and said to be; None where it is taken. The honest entries
    are served either way.
    """

    of: str
    field: str
    value: int
    outcome: str | None = None


NUMBERS = (
    Number("the largest number of a token", "proposal", "contract_uid", WIDEST),
    Number("M above what a column holds", "vault", "m", WIDEST + 1, LEFT_OUT),
    Number("a fee above what a column holds", "proposal", "fee_sats", WIDEST + 1, LEFT_OUT),
    Number("confirmations below what a column holds", "proposal", "confirmations", -WIDEST - 2, LEFT_OUT),
    Number("signatures above what a column holds", "proposal", "collected_signatures", 2**64, LEFT_OUT),
    Number("a workspace above what a column holds", "workspace", "uid", WIDEST + 1, LEFT_OUT),
)  # fmt: skip


@dataclass(frozen=True)
class Body(Named):
    """The body of an answer, by rule (`tests.support.bomb`): ``megabytes`` that it has once it is read.

    ``outcome``: the error's name, None where it is read; in bounded memory in any case.
    """

    rule: str
    megabytes: int
    outcome: str | None = None


REFUSED = "BadAnswer"
BODIES = (
    Body("a megabyte of blanks around an empty list", "blanks", 1),
    Body("half a megabyte of gzip that unfolds to five hundred", "packed", 500, REFUSED),
    Body("four times as much as an answer may have", "endless", 256, REFUSED),
    Body("as many values as fit into an answer", "values", 60, REFUSED),
)  # fmt: skip
