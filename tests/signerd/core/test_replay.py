"""What the rules would have said of the past."""

from datetime import UTC, datetime, timedelta

import pytest

from multisig import ChangeTo, Network, Psbt, build_psbt, inspect, sats
from signerd.core.audit import GENESIS, Entry, Note, link
from signerd.core.checks.case import InspectedCase
from signerd.core.replay import Answer, Decision, Replayed, decisions, replay
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
CASES = {psbt_id: case_of(psbt_id, amount) for psbt_id, amount in AMOUNTS.items()}
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
    return list(replay(chain(*happened), CASES, VAULTS, QUORUMS, read_rules(rules, Network.REGTEST)))


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
