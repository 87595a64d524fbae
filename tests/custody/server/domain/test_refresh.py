"""Refresh families against a model that keeps every token's history."""

from hypothesis import given
from hypothesis import strategies as st

from custody.server.domain.refresh import PresentedToken, Verdict, judge


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
