"""Which fragments of a message are mixed into which part of a UR (BCR-2024-001, "The Consensus Stack").

Sender and receiver draw the same fragments from the part's number and the message's checksum, so nothing of it is sent. The
arithmetic is IEEE-754, as the standard demands. It is no cryptography: whoever shows the parts chooses them.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache, reduce
from operator import add
from typing import Final

_MASK: Final = (1 << 64) - 1


class Xoshiro256:
    """The xoshiro256** generator, seeded by a SHA-256."""

    def __init__(self, seed: bytes) -> None:
        digest = hashlib.sha256(seed).digest()
        self._state = [int.from_bytes(digest[start : start + 8]) for start in range(0, 32, 8)]

    def next(self) -> int:
        state = self._state
        result = _rotate(state[1] * 5 & _MASK, 7) * 9 & _MASK
        shifted = state[1] << 17 & _MASK
        state[2] ^= state[0]
        state[3] ^= state[1]
        state[1] ^= state[2]
        state[0] ^= state[3]
        state[2] ^= shifted
        state[3] = _rotate(state[3], 45)
        return result

    def fraction(self) -> float:
        """From 0 up to, and by rounding once in a long while, 1."""
        return self.next() / 2.0**64

    def below(self, limit: int) -> int:
        return min(int(self.fraction() * limit), limit - 1)


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _MASK


class Sampler:
    """Draws an index with the probability of its weight (Walker's and Vose's alias method)."""

    def __init__(self, weights: Sequence[float]) -> None:
        # Added one by one: from 3.12 on `sum` rounds better than the standard's sum does, and would draw otherwise.
        count, total = len(weights), reduce(add, weights)
        self._share = [weight * count / total for weight in weights]
        self._alias = list(range(count))
        # From the end backwards: the order decides what is drawn, and both sides must draw the same.
        small = [index for index in reversed(range(count)) if self._share[index] < 1]
        large = [index for index in reversed(range(count)) if self._share[index] >= 1]
        while small and large:
            poor, rich = small.pop(), large.pop()
            self._alias[poor] = rich
            self._share[rich] += self._share[poor] - 1
            (small if self._share[rich] < 1 else large).append(rich)
        for index in small + large:
            self._share[index] = 1.0

    def draw(self, random: Xoshiro256) -> int:
        index = random.below(len(self._share))
        return index if random.fraction() < self._share[index] else self._alias[index]


@lru_cache(maxsize=8)
def _degrees(count: int) -> Sampler:
    return Sampler([1 / degree for degree in range(1, count + 1)])


def draw_degree(count: int, random: Xoshiro256) -> int:
    """How many of `count` fragments are mixed: one most often, two half as often, and so on."""
    return _degrees(count).draw(random) + 1


def shuffled(items: Sequence[int], random: Xoshiro256, count: int) -> list[int]:
    """`count` of the items, in the order they are drawn."""
    remaining = list(items)
    return [remaining.pop(random.below(len(remaining))) for _ in range(count)]


def fragments_of(number: int, count: int, checksum: int) -> frozenset[int]:
    """The fragments in part `number` (from 1 on) of a message of `count` fragments."""
    if number <= count:
        return frozenset({number - 1})
    random = Xoshiro256(number.to_bytes(4) + checksum.to_bytes(4))
    degree = draw_degree(count, random)
    return frozenset(shuffled(range(count), random, degree))
