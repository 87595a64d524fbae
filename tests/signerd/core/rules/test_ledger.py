"""What the chain says about signing: a fold that may stop anywhere and go on."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from signerd.core.audit import GENESIS, Entry, Note, link
from signerd.core.rules.spending import EARLIEST, UNSIGNED_AGAIN, Ledger

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
IDS = ("p-1", "p-2", "p-3")
KINDS = ("device-asked", "signed", "submitted", *sorted(UNSIGNED_AGAIN))
BEGIN = [
    (NOON, Note(kind, psbt_id, facts))
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
        st.integers(-20 * 24, 20 * 24).map(lambda hours: NOON + timedelta(hours=hours)),
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
    (asked,) = took(chain([*BEGIN, (NOON, Note("signed", "p-2"))])).asked()
    assert (asked.psbt_id, asked.at, asked.amount, asked.signed) == ("p-2", NOON, 37, True)


def test_what_the_device_is_asked_counts_already_and_no_more_once_it_failed() -> None:
    asking = [*BEGIN, (NOON, Note("device-asked", "p-1"))]
    assert [item.signed for item in took(chain(asking)).asked()] == [False]
    for kind in UNSIGNED_AGAIN:
        assert took(chain([*asking, (NOON, Note(kind, "p-1"))])).asked() == ()


def test_a_restart_takes_no_signature_back() -> None:
    happened = [*BEGIN, (NOON, Note("signed", "p-1")), (NOON, Note("restarted", "p-1"))]
    assert len(took(chain(happened)).asked()) == 1


def test_f_what_is_signed_with_the_clock_set_back_is_dated_by_the_largest_time() -> None:
    back = NOON - timedelta(days=30)
    ledger = took(chain([*BEGIN, (back, Note("signed", "p-1"))]))
    assert ledger.latest == NOON
    assert [item.at for item in ledger.asked()] == [NOON]


@given(happenings)
def test_it_is_what_a_second_reading_of_the_whole_chain_finds(entries: list[Entry]) -> None:
    latest, last, signed_at = EARLIEST, {}, {}
    for entry in entries:
        latest = max(latest, datetime.fromisoformat(entry.at))
        if entry.note.kind == "signed":
            signed_at[entry.note.subject] = latest
        if entry.note.kind in KINDS and entry.note.kind != "submitted":
            last[entry.note.subject] = entry.note.kind
    expected = {key: at for key, at in signed_at.items() if at > latest - timedelta(days=7)}
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
