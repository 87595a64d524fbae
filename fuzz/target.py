"""A parser of untrusted input, as the fuzzer and the tests see it: a check that raises where a promise is
broken, and inputs to begin with.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

Change = Callable[[bytes], bytes]
"""Alters a value in whatever way the fuzzer thinks is interesting."""
Mutator = Callable[[bytes, Random, Change], bytes]
"""A new input from one; all chance comes from the generator, so that one seed always gives one input."""


class BrokenPromise(AssertionError):
    """The parser let something through that it promises to refuse."""


def require(promise: bool, sentence: str) -> None:
    if not promise:
        raise BrokenPromise(sentence)


@dataclass(frozen=True)
class Target:
    """One parser of untrusted input.

    `check` raises nothing for any bytes as long as the parser keeps its promises. `seeds` are sound inputs,
    of which the corpus was made. `largest` bounds an input: small ones find as much, and many more of them
    are tried in a minute.
    """

    name: str
    check: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]
    largest: int = 4096
    mutator: Mutator | None = None
    # After this long one input is a finding: most take milliseconds,
    # a whole daemon on a busy machine takes seconds.
    seconds: int = 5
