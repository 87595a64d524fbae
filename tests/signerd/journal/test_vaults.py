"""A change of a pinned vault in the journal: marked once, told once, and standing until the person has looked
(S16).
"""

from dataclasses import replace

import pytest

from signerd.core.events import JudgeAgain, Level, Notify
from signerd.core.states import State
from signerd.journal import Journal
from tests.signerd.journal.test_journal import HONEST
from tests.support.desk import CLAIM, VAULT_ID, judge_again
from tests.support.wallets import ALICE, BOB, MALLORY, make_vault

FOREIGN = replace(CLAIM, descriptor=make_vault((ALICE, BOB, MALLORY)).descriptor)
WEAKER = replace(CLAIM, descriptor=make_vault(threshold=1).descriptor, threshold=1)


def kinds(journal: Journal) -> list[str]:
    return [entry.note.kind for entry in journal.audit()]


@pytest.mark.parametrize("claim", [FOREIGN, replace(CLAIM, signers=4), replace(CLAIM, descriptor="nonsense")])
def test_s16_a_change_is_recorded_told_and_refuses(journal: Journal, claim) -> None:
    """Of any part: which parts there are is `core/test_claims.py`'s."""
    journal.poll(HONEST)
    learnt = journal.learn(claim)
    told = [news for news in learnt if isinstance(news, Notify)]
    assert (told[0].psbt_id, told[0].level) == (VAULT_ID, Level.ALARM)
    assert journal.changes_of(journal.pin(VAULT_ID))
    assert kinds(journal).count("vault-changed") == 1
    judge_again(journal)
    assert journal.record("p-1").state is State.REFUSED
    assert "vault-alarm" in {verdict.name for verdict in journal.review("p-1").refusals}


def test_s16_each_distinct_change_is_an_alarm_once(journal: Journal) -> None:
    for claim in (FOREIGN, WEAKER, FOREIGN, CLAIM, WEAKER, replace(WEAKER, name="Renamed")):
        journal.learn(claim)
    assert kinds(journal).count("vault-changed") == 2
    assert not journal.learn(replace(WEAKER, name="Renamed"))


def test_a_change_of_a_vault_that_is_not_pinned_is_news_and_no_alarm(journal: Journal) -> None:
    other = replace(FOREIGN, vault_id="vault-2")
    assert journal.learn(other)
    learnt = journal.learn(replace(other, descriptor=make_vault(threshold=1).descriptor))
    assert learnt == (JudgeAgain(),)
