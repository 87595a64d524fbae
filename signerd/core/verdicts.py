"""What a check says: allow, warn or refuse, under a stable name, in a sentence, with its figures."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Figure = str | int


class Outcome(StrEnum):
    ALLOW = "allow"
    WARN = "warn"
    REFUSE = "refuse"


@dataclass(frozen=True)
class Verdict:
    """``acknowledge``: a warning that the person must name when approving; until then it holds the proposal."""

    name: str
    outcome: Outcome
    sentence: str
    figures: Mapping[str, Figure] = field(default_factory=dict)
    acknowledge: bool = False


def allow(name: str, sentence: str, **figures: Figure) -> Verdict:
    return Verdict(name, Outcome.ALLOW, sentence, figures)


def warn(name: str, sentence: str, **figures: Figure) -> Verdict:
    return Verdict(name, Outcome.WARN, sentence, figures)


def hold(name: str, sentence: str, **figures: Figure) -> Verdict:
    return Verdict(name, Outcome.WARN, sentence, figures, acknowledge=True)


def refuse(name: str, sentence: str, **figures: Figure) -> Verdict:
    return Verdict(name, Outcome.REFUSE, sentence, figures)
