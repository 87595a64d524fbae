"""Rolling limits against a model that tries every way in which signed transactions can confirm; the ledger of
a chain.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from multisig import OutPoint
from signerd.core.audit import GENESIS, Entry, Note, link
from signerd.core.rules.spending import (
    EARLIEST,
    UNSIGNED_AGAIN,
    Ledger,
    Moment,
    Spent,
    most_spent,
    worst_case,
)

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
DAY = timedelta(days=1)
COINS = [OutPoint(f"{n:064x}", n) for n in range(5)]


def coins(*numbers: int) -> frozenset[OutPoint]:
    return frozenset(COINS[n] for n in numbers)


def spent(name: str, amount: int, *numbers: int, hours: float = 0) -> Spent:
    """Signed so many hours before noon."""
    return Spent(name, "v", NOON - timedelta(hours=hours), amount, coins(*numbers))


some_spent = st.builds(
    Spent,
    psbt_id=st.uuids().map(str),
    quorum=st.just("v"),
    at=st.integers(-30 * 60, 60).map(lambda minutes: NOON + timedelta(minutes=minutes)),
    amount=st.integers(0, 1000),
    outpoints=st.frozensets(st.sampled_from(COINS), min_size=1, max_size=3),
)
several = st.lists(some_spent, max_size=6)


def can_confirm_together(group: tuple[Spent, ...]) -> bool:
    return sum(len(item.outpoints) for item in group) == len(
        frozenset().union(*(item.outpoints for item in group))
    )


def brute_force(items: list[Spent]) -> int:
    """The most that any set of transactions that share no coin pays."""
    groups = (group for size in range(len(items) + 1) for group in combinations(items, size))
    return max(sum(item.amount for item in group) for group in groups if can_confirm_together(group))


@given(several)
def test_the_worst_case_is_never_below_what_can_confirm_and_never_above_the_sum(items: list[Spent]) -> None:
    assert brute_force(items) <= worst_case(items) <= sum(item.amount for item in items)


@given(several)
def test_where_no_coin_is_shared_it_is_the_sum(items: list[Spent]) -> None:
    apart = [replace(item, outpoints=frozenset({OutPoint("00" * 32, n)})) for n, item in enumerate(items)]
    assert worst_case(apart) == sum(item.amount for item in items) == brute_force(apart)


@given(several)
def test_where_all_spend_one_coin_the_largest_counts(items: list[Spent]) -> None:
    rivals = [replace(item, outpoints=item.outpoints | coins(0)) for item in items]
    assert worst_case(rivals) == max((item.amount for item in items), default=0) == brute_force(rivals)


@given(several, some_spent, st.integers(-48 * 60, 48 * 60), st.integers(-48 * 60, 48 * 60))
def test_a_window_counts_what_the_model_counts(items: list[Spent], this: Spent, now: int, seen: int) -> None:
    moment = Moment(NOON + timedelta(minutes=now), NOON + timedelta(minutes=seen))
    counted = [item for item in items if item.at > moment.furthest - DAY]
    total = most_spent(moment, items, this)
    assert brute_force([*counted, this]) <= total <= sum(item.amount for item in [*counted, this])
    assert total >= this.amount


@given(several, some_spent, st.integers(0, 72 * 60))
def test_f_a_clock_set_back_frees_nothing(items: list[Spent], this: Spent, back: int) -> None:
    true = Moment(NOON, NOON)
    wrong = Moment(NOON - timedelta(minutes=back), NOON)
    assert most_spent(wrong, items, this) == most_spent(true, items, this)


def test_a_payment_leaves_the_window_exactly_when_it_is_as_old_as_the_window() -> None:
    this, moment = spent("this", 1, 0), Moment(NOON, NOON)
    assert most_spent(moment, [spent("old", 10, 1, hours=24)], this) == 1
    assert most_spent(moment, [spent("new", 10, 1, hours=23.999)], this) == 11


def test_the_one_that_is_judged_counts_once() -> None:
    this = spent("this", 5, 0)
    assert most_spent(Moment(NOON, NOON), [this, spent("other", 7, 1)], this) == 12


AT_NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
IDS = ("p-1", "p-2", "p-3")
KINDS = ("device-asked", "signed", "submitted", *sorted(UNSIGNED_AGAIN))
BEGIN = [
    (AT_NOON, Note(kind, psbt_id, facts))
    for psbt_id in IDS
    for kind, facts in (
        ("received", {"vault": f"v-{psbt_id}", "transaction": "00"}),
        ("approved", {"payments": [["0014", 7], ["0015", 30]]}),
    )
]


def chain(happened: list[tuple[datetime, Note]]) -> list[Entry]:
    entries: list[Entry] = []
    for at, note in happened:
        text = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        entries.append(link(len(entries) + 1, text, note, entries[-1].digest if entries else GENESIS))
    return entries


def lawful(happened: list[tuple[datetime, Note]]) -> list[tuple[datetime, Note]]:
    """One proposal, one signature: after it no device is asked."""
    signed: set[str] = set()
    kept = []
    for at, note in happened:
        if note.subject in signed and note.kind in {"signed", "device-asked"}:
            continue
        if note.kind == "signed":
            signed.add(note.subject)
        kept.append((at, note))
    return kept


happenings = st.lists(
    st.tuples(
        st.integers(-20 * 24, 20 * 24).map(lambda hours: AT_NOON + timedelta(hours=hours)),
        st.builds(Note, st.sampled_from(KINDS), st.sampled_from(IDS)),
    ),
    max_size=25,
).map(lambda more: chain([*BEGIN, *lawful(more)]))


def took(entries: list[Entry]) -> Ledger:
    ledger = Ledger()
    ledger.take(entries)
    return ledger


def test_an_empty_chain_knows_nothing() -> None:
    assert Ledger().asked() == ()
    assert Ledger().latest == EARLIEST


def test_payments_are_those_that_were_approved() -> None:
    (asked,) = took(chain([*BEGIN, (AT_NOON, Note("signed", "p-2"))])).asked()
    assert (asked.psbt_id, asked.at, asked.amount, asked.signed) == ("p-2", AT_NOON, 37, True)


def test_what_the_device_is_asked_counts_already_and_no_more_once_it_failed() -> None:
    asking = [*BEGIN, (AT_NOON, Note("device-asked", "p-1"))]
    assert [item.signed for item in took(chain(asking)).asked()] == [False]
    for kind in UNSIGNED_AGAIN:
        assert took(chain([*asking, (AT_NOON, Note(kind, "p-1"))])).asked() == ()


def test_a_restart_takes_no_signature_back() -> None:
    happened = [*BEGIN, (AT_NOON, Note("signed", "p-1")), (AT_NOON, Note("restarted", "p-1"))]
    assert len(took(chain(happened)).asked()) == 1


def test_f_what_is_signed_with_the_clock_set_back_is_dated_by_the_largest_time() -> None:
    back = AT_NOON - timedelta(days=30)
    ledger = took(chain([*BEGIN, (back, Note("signed", "p-1"))]))
    assert ledger.latest == AT_NOON
    assert [item.at for item in ledger.asked()] == [AT_NOON]


@given(happenings)
def test_it_is_what_a_second_reading_of_the_whole_chain_finds(entries: list[Entry]) -> None:
    latest, last, signed_at = EARLIEST, {}, {}
    for entry in entries:
        latest = max(latest, datetime.fromisoformat(entry.at))
        if entry.note.kind == "signed":
            signed_at[entry.note.subject] = latest
        if entry.note.kind in KINDS and entry.note.kind != "submitted":
            last[entry.note.subject] = entry.note.kind
    expected = {key: at for key, at in signed_at.items() if at > latest - DAY - timedelta(minutes=1)}
    found = took(entries)
    assert found.latest == latest
    assert {item.psbt_id: item.at for item in found.asked() if item.signed} == expected
    asking = {key for key, kind in last.items() if kind == "device-asked"}
    assert {item.psbt_id for item in found.asked() if not item.signed} == asking - set(signed_at)


@given(happenings, st.integers(0, 30))
def test_it_goes_on_where_it_stood(entries: list[Entry], cut: int) -> None:
    ledger = took(entries[:cut])
    ledger.asked()
    ledger.take(entries[cut:])
    whole = took(entries)
    assert ledger.asked() == whole.asked()
    assert (ledger.latest, ledger.sequence) == (whole.latest, whole.sequence)
