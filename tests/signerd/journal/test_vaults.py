"""A change of a pinned vault in the journal: marked once, told once, and standing until the person has looked
(S16).
"""

from dataclasses import replace

from signerd.core.events import JudgeAgain
from signerd.journal import Journal
from tests.support.desk import CLAIM
from tests.support.wallets import ALICE, BOB, MALLORY, make_vault

FOREIGN = replace(CLAIM, descriptor=make_vault((ALICE, BOB, MALLORY)).descriptor)
WEAKER = replace(CLAIM, descriptor=make_vault(threshold=1).descriptor, threshold=1)


def kinds(journal: Journal) -> list[str]:
    return [entry.note.kind for entry in journal.audit()]


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
