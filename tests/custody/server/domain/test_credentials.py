"""Tokens, ids and codes."""

import secrets
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from custody.schemas.auth import OneTimeCode, OpaqueToken
from custody.schemas.common import TextId
from custody.server.domain.credentials import (
    PresentedToken,
    Verdict,
    judge,
    new_id,
    new_otp,
    new_token,
    otp_hash,
    token_hash,
)


@given(st.binary(min_size=32, max_size=32))
def test_have_the_shapes_of_the_wire(data: bytes) -> None:
    def random(count: int) -> bytes:
        return data[:count]

    assert TypeAdapter(OpaqueToken).validate_python(new_token(random)) == new_token(random)
    assert TypeAdapter(TextId).validate_python(new_id(random)) == new_id(random)
    assert TypeAdapter(OneTimeCode).validate_python(new_otp(random)) == new_otp(random)


def test_codes_use_all_digits_in_all_places() -> None:
    codes = [new_otp(secrets.token_bytes) for _ in range(2_000)]
    for place in range(6):
        assert set(Counter(code[place] for code in codes)) == set("0123456789")


def test_a_codes_hash_depends_on_its_token() -> None:
    """P38."""
    assert otp_hash("123456", "one") != otp_hash("123456", "two")
    assert otp_hash("123456", "one") == otp_hash("123456", "one")


def test_a_hash_is_not_the_token() -> None:
    assert b"token" not in token_hash("token")
    assert len(token_hash("token")) == 32


def test_the_table() -> None:
    def verdict(generation: int, used: int, *, was_used: bool) -> Verdict:
        return judge(PresentedToken(generation, was_used=was_used), used)

    assert verdict(1, 0, was_used=False) is Verdict.FIRST_USE
    assert verdict(1, 1, was_used=True) is Verdict.REPEAT
    assert verdict(2, 1, was_used=False) is Verdict.FIRST_USE
    assert verdict(1, 2, was_used=True) is Verdict.REUSE
    assert verdict(2, 2, was_used=False) is Verdict.REUSE


@given(st.lists(st.integers(0, 50), max_size=30))
def test_a_token_is_good_until_a_successor_of_its_was_used(choices: list[int]) -> None:
    """P40. The model: each token knows its parent; a use of a child, or of a sibling, kills it."""
    parents: dict[int, int | None] = {0: None}
    generation = {0: 1}
    used: set[int] = set()
    used_generation = 0
    for choice in choices:
        token = choice % len(parents)
        siblings = {t for t, g in generation.items() if g == generation[token] and t != token}
        children = {t for t, g in generation.items() if g == generation[token] + 1}
        is_dead = bool(used & siblings) or bool(used & children)
        verdict = judge(PresentedToken(generation[token], was_used=token in used), used_generation)
        assert (verdict is Verdict.REUSE) == is_dead
        if is_dead:
            return
        used.add(token)
        used_generation = max(used_generation, generation[token])
        fresh = len(parents)
        parents[fresh], generation[fresh] = token, generation[token] + 1
