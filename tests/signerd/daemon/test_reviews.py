"""Reviews are kept while nothing changes, and not for ever."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from signerd.core.tokens import PublishedToken
from signerd.core.values import Record
from signerd.daemon.imported import Reviews
from tests.signerd.journal.test_journal import prepared
from tests.support.desk import snapshot_of, spend
from tests.support.tokens import gold, token_snapshot
from tests.support.wallets import foreign_script


@pytest.fixture
def three(tmp_path: Path) -> Iterator[tuple[Reviews, tuple[Record, ...]]]:
    """Room for two, and three of one size."""
    with prepared(tmp_path) as journal:
        for number in range(1, 4):
            journal.poll(snapshot_of(spend(fee=1_000 + number), f"p-{number}"))
        records = journal.records()
        yield Reviews(journal, most=2 * len(records[0].snapshot.psbt)), records


def test_within_the_bound_they_are_kept_and_beyond_it_not(three, judged: list[str]) -> None:
    kept, (first, second, third) = three
    for record in (first, second, first, second):
        kept.of(record)
    assert judged == ["p-1", "p-2"]
    for record in (third, third, first):
        kept.of(record)
    assert judged[2:] == ["p-3", "p-1"]
    # The newest is kept however large it is.
    alone = Reviews(kept._journal, most=1)
    assert alone.of(first) is alone.of(first)


def test_what_a_token_lists_counts_though_its_psbt_is_small(tmp_path: Path, judged: list[str]) -> None:
    scripts = tuple(sorted(foreign_script(f"holder {number}") for number in range(100)))
    tokens = [gold(whitelist=scripts, decimals=decimals) for decimals in (1, 2)]
    with prepared(tmp_path) as journal:
        for number, token in enumerate(tokens, 1):
            journal.poll(token_snapshot(token.deployment, psbt_id=f"t-{number}"))
            journal.learn_token(token.deployment, PublishedToken(token.blob))
        records = journal.records()
        kept = Reviews(journal, most=3 * len(records[0].snapshot.psbt))
        for record in (*records, records[0]):
            kept.of(record)
        assert judged == ["t-1", "t-2", "t-1"]
