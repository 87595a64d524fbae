"""When a refresh token is good, and when its use betrays a thief.

A family counts generations. Presenting a token of generation g issues one of g + 1. The one before stays good until
its successor is first used, so that a client killed between the two is not locked out; anything older ends the family.
"""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    FIRST_USE = "first-use"  # the newest generation: from now on its predecessor is dead
    REPEAT = "repeat"  # its successor was never used: the answer was probably lost on the way
    REUSE = "reuse"  # somebody holds a copy


@dataclass(frozen=True)
class PresentedToken:
    """``generation`` counts from 1; ``was_used``: this very token, not only one of its generation."""

    generation: int
    was_used: bool


def judge(token: PresentedToken, used_generation: int) -> Verdict:
    """``used_generation``: the highest generation of the family that was ever used, 0 at first."""
    if token.generation == used_generation + 1:
        return Verdict.FIRST_USE
    if token.generation == used_generation and token.was_used:
        return Verdict.REPEAT
    return Verdict.REUSE
