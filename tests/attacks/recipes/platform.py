"""F: what a platform answers that is no proposal to sign: numbers that no column holds, bodies that grow
while they are read.
"""

from dataclasses import dataclass

LEFT_OUT, UNFORESEEN = "left-out", "unforeseen"
WIDEST = 2**63 - 1
IN_BOUNDS = {"outcome": LEFT_OUT, "off": "numbers-in-bounds"}


@dataclass(frozen=True)
class Number:
    """One number of an answer, in an entry beside honest ones. ``of``: "vault", "proposal" or "workspace".

    ``outcome``: what is told of the entry: that it is left out for its number, or as an unforeseen failure;
    None where it is taken. ``off`` and ``then`` as in a recipe; whatever is told,
    the honest entries are served.
    """

    name: str
    of: str
    field: str
    value: int
    outcome: str | None = None
    off: str | None = None
    then: str | None = None


NUMBERS = (
    Number("the largest number of a token", "proposal", "contract_uid", WIDEST),
    Number("the smallest number of a token", "proposal", "contract_uid", -WIDEST - 1),
    Number("M above what a column holds", "vault", "m", WIDEST + 1, **IN_BOUNDS, then=UNFORESEEN),
    Number("M below what a column holds", "vault", "m", -WIDEST - 2, **IN_BOUNDS, then=UNFORESEEN),
    Number("M of thirty digits", "vault", "m", 10**29, LEFT_OUT),
    Number("N above what a column holds", "vault", "n", WIDEST + 1, **IN_BOUNDS, then=UNFORESEEN),
    Number("a balance above what a column holds", "vault", "confirmed_sats", WIDEST + 1, **IN_BOUNDS),
    Number("a fee above what a column holds", "proposal", "fee_sats", WIDEST + 1, **IN_BOUNDS),
    Number("confirmations above what a column holds", "proposal", "confirmations", WIDEST + 1, **IN_BOUNDS),
    Number("confirmations below what a column holds", "proposal", "confirmations", -WIDEST - 2, **IN_BOUNDS),
    Number("a threshold above what a column holds", "proposal", "required_signatures", WIDEST + 1, **IN_BOUNDS),
    Number("signatures above what a column holds", "proposal", "collected_signatures", 2**64, **IN_BOUNDS),
    Number("a token above what a column holds", "proposal", "contract_uid", WIDEST + 1, **IN_BOUNDS),
    Number("a workspace above what a column holds", "workspace", "uid", WIDEST + 1, **IN_BOUNDS, then=UNFORESEEN),
    Number("a workspace below what a column holds", "workspace", "uid", -WIDEST - 2, **IN_BOUNDS, then=UNFORESEEN),
)  # fmt: skip


@dataclass(frozen=True)
class Body:
    """The body of an answer, by rule (`tests.support.bomb`): ``megabytes`` that it has once it is read.

    ``outcome``: the error's name, None where it is read; in bounded memory in any case, and without the guard
    ``off`` in no bounded one, whatever the error is ``then``.
    """

    name: str
    rule: str
    megabytes: int
    outcome: str | None = None
    off: str | None = None
    then: str | None = None


REFUSED = "BadAnswer"
BODIES = (
    Body("a megabyte of blanks around an empty list", "blanks", 1),
    Body("half a megabyte of gzip that unfolds to five hundred", "packed", 500, REFUSED, "packed-answers", REFUSED),
    Body("four times as much as an answer may have", "endless", 256, REFUSED, "answer-bytes", REFUSED),
    Body("as many values as fit into an answer", "values", 60, REFUSED, "answer-values", REFUSED),
)  # fmt: skip
