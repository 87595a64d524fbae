"""What the rules would have said of the past, and what a change lets pass that was stopped before."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import ChangeTo, Network, Psbt, Sats, build_psbt, inspect, sats
from signerd.core.audit import GENESIS, Entry, Note, link
from signerd.core.checks.case import InspectedCase
from signerd.core.rule_changes import (
    Answer,
    Decision,
    Replayed,
    decisions,
    looser_limits,
    looser_rules,
    replay,
)
from signerd.core.rules.values import AbovePerTransaction, AboveWithin, Action, Always, Period, Rule, Rules
from signerd.core.values import Limits
from tests.support.desk import NETWORK, VAULT, VAULT_ID, make_pin, read_rules, review_context, snapshot_of
from tests.support.wallets import fund, pay

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def case_of(psbt_id: str, amount: int) -> InspectedCase:
    coins = [fund(VAULT, 300_000, salt=int(psbt_id[2:]))]
    psbt = build_psbt(VAULT, coins, [pay(amount), ChangeTo(sats(299_000 - amount), 1, 0)], 0)
    return InspectedCase(
        snapshot_of(psbt, psbt_id),
        Psbt.parse(psbt.to_bytes()),
        review_context(),
        make_pin(),
        inspect(psbt, VAULT, network=NETWORK),
    )


AMOUNTS = {"p-1": 60_000, "p-2": 60_000, "p-3": 60_000, "p-4": 5}
PROPOSALS = {psbt_id: case_of(psbt_id, amount) for psbt_id, amount in AMOUNTS.items()}
VAULTS = dict.fromkeys(AMOUNTS, VAULT_ID)
QUORUMS = dict.fromkeys(AMOUNTS, VAULT.verification_code)


def chain(*happened: tuple[int, str, str]) -> list[Entry]:
    """(hours after noon, kind, proposal)."""
    entries: list[Entry] = []
    for hours, kind, psbt_id in happened:
        facts = {
            "received": {"vault": VAULT_ID, "transaction": "00"},
            "judged": {"refusals": [], "digest": "00"},
            "approved": {"payments": [["00", AMOUNTS[psbt_id]]]},
        }
        at = (NOON + timedelta(hours=hours)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        note = Note(kind, psbt_id, facts.get(kind, {}))
        entries.append(link(len(entries) + 1, at, note, entries[-1].digest if entries else GENESIS))
    return entries


def signed(psbt_id: str, hours: int) -> list[tuple[int, str, str]]:
    return [(hours, kind, psbt_id) for kind in ("received", "judged", "approved", "device-asked", "signed")]


def replayed(rules: str, *happened: tuple[int, str, str]) -> list[Replayed]:
    return list(replay(chain(*happened), PROPOSALS, VAULTS, QUORUMS, read_rules(rules, Network.REGTEST)))


PER_DAY = '[refuse]\nabove_per_day = "100000 sat"\n'


def test_each_is_judged_by_what_was_known_then_and_what_is_refused_counts_no_more() -> None:
    lines = replayed(PER_DAY, *signed("p-1", 0), *signed("p-2", 1), *signed("p-3", 24))
    # The second would have been refused, so that the third comes a day after the only one that counts.
    assert [line.answer for line in lines] == [Answer.PASS, Answer.REFUSE, Answer.PASS]
    assert [line.decided.decision for line in lines] == [Decision.SIGNED] * 3


def test_the_moment_is_the_one_when_the_device_was_asked() -> None:
    rules = '[ask]\nexcept_within = { zone = "UTC", days = ["fri"], from = "12:00", to = "13:00" }\n'
    late = [(1 if kind == "signed" else hours, kind, p) for hours, kind, p in signed("p-1", 0)]
    (line,) = replayed(rules, *late)
    assert (line.answer, line.decided.at) == (Answer.PASS, NOON)
    (line,) = replayed(rules, *signed("p-1", 1))
    assert line.answer is Answer.ASK
    assert [verdict.name for verdict in line.verdicts] == ["rule-ask-hours"]


@pytest.mark.parametrize(
    ("more", "decision"),
    [
        ([], Decision.OPEN),
        ([(1, "approved", "p-1")], Decision.APPROVED),
        ([(1, "declined", "p-1"), (2, "judged", "p-1")], Decision.DECLINED),
        ([(1, "approved", "p-1"), (2, "judged", "p-1")], Decision.OPEN),
        ([(1, "approved", "p-1"), (1, "device-asked", "p-1"), (2, "interrupted", "p-1")], Decision.APPROVED),
    ],
)
def test_what_became_of_it(more: list[tuple[int, str, str]], decision: Decision) -> None:
    (found,) = decisions(chain((0, "received", "p-1"), (0, "judged", "p-1"), *more))
    assert found.decision is decision


def test_what_a_check_refused_is_told_so() -> None:
    entry = link(1, "2026-01-02T12:00:00.000Z", Note("judged", "p-1", {"refusals": ["own-key"]}), GENESIS)
    assert [d.decision for d in decisions([entry])] == [Decision.REFUSED]


def test_what_cannot_be_judged_is_said_to_be_so() -> None:
    (line,) = replay(chain(*signed("p-1", 0)), {}, VAULTS, QUORUMS, read_rules(PER_DAY, Network.REGTEST))
    assert (line.answer, line.paid, line.vault_id) == (Answer.UNKNOWN, None, VAULT_ID)


def test_other_entries_decide_nothing() -> None:
    assert decisions(chain((0, "pinned", "p-1"), (0, "submitted", "p-2"), (0, "signed", "p-3"))) == ()


REFUSE = "[refuse]\n"
CASES = {
    "a limit goes up": (REFUSE + 'above_per_day = "1 BTC"', REFUSE + 'above_per_day = "2 BTC"', 1),
    "a limit goes down": (REFUSE + 'above_per_day = "2 BTC"', REFUSE + 'above_per_day = "1 BTC"', 0),
    "a rule goes": (REFUSE + "any_token = true", "", 1),
    "a rule comes": ("", REFUSE + "any_token = true", 0),
    "it only asks": (REFUSE + "always = true", "[ask]\nalways = true", 1),
    "it refuses now": ("[ask]\nalways = true", REFUSE + "always = true", 0),
    "another window": (REFUSE + 'above_per_day = "1 BTC"', REFUSE + 'above_per_week = "1 BTC"', 1),
}


@pytest.mark.parametrize(("old", "new", "looser"), CASES.values(), ids=CASES)
def test_what_lets_more_pass_is_told_and_what_does_not_is_not(old, new, looser):
    found = looser_rules(read_rules(old, NETWORK), read_rules(new, NETWORK), NETWORK)
    assert len(found) == looser


def test_one_vaults_rule_does_not_stand_for_that_of_all():
    of_all, of_one = Rule(Action.REFUSE, Always()), Rule(Action.REFUSE, Always(), "v-1", frozenset({"C"}))
    assert looser_rules(Rules((of_all,)), Rules((of_one,)), NETWORK)
    assert not looser_rules(Rules((of_one,)), Rules((of_all,)), NETWORK)
    other = replace(of_one, codes=frozenset({"D"}))
    assert looser_rules(Rules((of_one,)), Rules((other,)), NETWORK)


LIMITS = st.integers(min_value=0, max_value=10**9).map(Sats)
RULES = st.lists(
    st.builds(
        Rule,
        st.sampled_from(Action),
        st.builds(AbovePerTransaction, LIMITS) | st.builds(AboveWithin, st.sampled_from(Period), LIMITS),
    ),
    max_size=4,
).map(lambda rules: Rules(tuple(rules)))


@given(RULES, RULES, st.integers(min_value=0, max_value=10**9))
def test_where_nothing_is_told_no_amount_passes_that_was_stopped(old, new, paid):
    """One payment alone, judged by every rule."""

    def stopped(rules: Rules) -> set[Action]:
        met = {rule.action for rule in rules.rules if paid > rule.condition.limit}
        return met | ({Action.ASK} if Action.REFUSE in met else set())

    if not looser_rules(old, new, NETWORK):
        assert stopped(old) <= stopped(new)


def test_each_limit_that_goes_up_is_told():
    low = Limits(max_fee=Sats(1_000), max_fee_percent=1, warn_fee_percent=1)
    high = Limits(max_fee=Sats(2_000), max_fee_percent=2, warn_fee_percent=2)
    assert len(list(looser_limits(low, high))) == 3
    assert list(looser_limits(high, low)) == []
