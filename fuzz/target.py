"""A fuzz target for a parser of untrusted input: a check that raises where a promise is broken, and seeds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

Change = Callable[[bytes], bytes]
"""Alters a value as the fuzzer chooses."""
Mutator = Callable[[bytes, Random, Change], bytes]
"""Makes a new input from one; deterministic for a given generator."""


class BrokenPromise(AssertionError):
    """The parser let something through that it promises to refuse."""


def require(promise: bool, sentence: str) -> None:
    if not promise:
        raise BrokenPromise(sentence)


@dataclass(frozen=True)
class Target:
    """One parser of untrusted input.

    `check` raises nothing for any bytes while the parser keeps its promises. `seeds` are valid inputs, from
    which the corpus was made. `largest` bounds an input: small ones find as much and run faster.
    """

    name: str
    check: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]
    largest: int = 4096
    mutator: Mutator | None = None
    # An input that takes longer is a finding: most take milliseconds,
    # a whole daemon on a busy machine takes seconds.
    seconds: int = 5
