"""A list is accepted by its signature and serial alone; it never calls an exposed key safe."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.advisories import (
    MAX_BYTES,
    AdvisoriesRefused,
    Advisory,
    Concern,
    KeyFacts,
    MalformedAdvisories,
    OlderAdvisories,
    PublisherKey,
    UntrustedAdvisories,
    believe,
    publish,
    read_list,
    sign,
)
from multisig.canonical_json import canonical_json
from tests.support.advisories import AUX, Publisher, affected, entry, public, secret
from tests.support.pages import DOCS

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ONE, TWO, THREE = secret(1), secret(2), secret(3)
FIRST = Publisher()
ROTATED = Publisher([ONE, TWO])
LINE = FIRST.list(3, entry()).line


def taken(data: bytes, *held, trusted=None, now=NOW):
    return believe(data, {FIRST.root} if trusted is None else trusted, held, now)


def test_a_signed_list_is_believed_and_once_more():
    told, held = taken(LINE + b"\n")
    assert [each.id for each in told.advisories] == ["COLDCARD-2026-07"]
    assert (held.epoch, held.serial) == (1, 3)
    assert taken(LINE, held) == (told, held)


@given(st.integers(0, len(LINE) - 1), st.integers(1, 255))
def test_p85_no_changed_byte_passes(place, change):
    forged = bytearray(LINE)
    forged[place] ^= change
    with pytest.raises(AdvisoriesRefused):
        taken(bytes(forged))


@given(st.integers(0, len(LINE) - 1))
def test_no_part_of_a_list_is_one(length):
    with pytest.raises(MalformedAdvisories):
        taken(LINE[:length])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not JSON"),
        (b"[]", "the list"),
        (b"{" + b'"a":{' * 5_000, "JSON|deep"),
        (b" " * (MAX_BYTES + 1), "more than"),
        (b'{"format":1,"format":1}', "twice"),
        (LINE.replace(b'"serial":3', b'"serial":3.0'), "whole number"),
        (LINE.replace(b'"serial":3', b'"serial":4294967297'), "serial"),
        (LINE.replace(b'"format":1', b'"format":2'), "format"),
        (LINE.replace(b"can be guessed", rb"can \u0007 be"), "form|printable"),
        (json.dumps(json.loads(LINE)).encode(), "canonical"),
    ],
)
def test_what_is_no_list_is_refused_in_words(data, words):
    with pytest.raises(MalformedAdvisories, match=words):
        taken(data)


@pytest.mark.parametrize(
    "changed",
    [
        entry("A-1", affected(made={"from": "2026-02-30", "before": None})),
        entry("A-1", affected(made={"from": "2026-02-02", "before": "2026-02-01"})),
        entry("A-1", affected(firmware=[{"line": "Z", "from": None, "below": None}])),
        entry("A-1", affected(firmware=[{"line": "", "from": "5.0", "below": "5.0.0"}])),
        entry("A-1", affected(firmware=[{"line": "", "from": "five", "below": None}])),
        entry(text="One line\nand another"),
        entry(sources=["http://example.org/"]),
        entry() | {"affected": []},
        entry() | {"more": 1},
    ],
)
def test_an_entry_that_means_nothing_refuses_the_list(changed):
    said = json.loads(LINE) | {"advisories": [changed]}
    with pytest.raises(MalformedAdvisories):
        read_list(canonical_json(said))


def test_p85_another_publishers_list_is_not_believed():
    other = Publisher([THREE])
    with pytest.raises(UntrustedAdvisories, match="None of the keys"):
        taken(other.list(9, entry()).line)
    with pytest.raises(UntrustedAdvisories, match="set its key first"):
        taken(LINE, trusted=set())
    # It names the trusted key, and signs with its own.
    with pytest.raises(UntrustedAdvisories, match="was changed"):
        taken(FIRST.list(9).signed(THREE, AUX).line)


def test_p86_serials_only_grow():
    _, held = taken(LINE)
    for older in (FIRST.list(2, entry()), FIRST.list(3)):
        with pytest.raises(OlderAdvisories, match="the serial"):
            taken(older.line, held)
    assert taken(FIRST.list(4).line, held)[1].serial == 4


def test_what_is_over_is_not_taken():
    with pytest.raises(OlderAdvisories, match="expired"):
        taken(LINE, now=datetime(2027, 2, 1, tzinfo=UTC))


def test_p86_a_key_hands_over_and_its_former_one_is_believed_no_more():
    _, before = taken(LINE)
    told, held = taken(ROTATED.list(4, entry()).line, before)
    assert (held.root, held.key, held.epoch) == (FIRST.root, public(TWO), 2)
    # The holder of the first key signs a newer list, or hands over to another key.
    for stolen in (FIRST.list(5), Publisher([ONE, THREE]).list(5), Publisher([ONE, THREE, TWO]).list(5)):
        with pytest.raises(AdvisoriesRefused):
            taken(stolen.line, held)
    assert taken(Publisher([ONE, TWO, THREE]).list(5).line, held)[1].epoch == 3
    # The memory holds where the newer key is configured instead of the first.
    with pytest.raises(OlderAdvisories):
        taken(ROTATED.list(3).line, held, trusted={public(TWO)})
    assert told.signer.key == public(TWO)


@pytest.mark.parametrize("held_by", [ONE, TWO], ids=["one", "two"])
@pytest.mark.parametrize("stolen", [ONE, TWO], ids=["one", "two"])
@pytest.mark.parametrize("after", [[], [secret(4)]], ids=["itself", "handed over"])
@pytest.mark.parametrize("names_the_newest", [False, True])
def test_p86_a_replaced_key_is_not_believed_where_it_is_configured_itself(
    held_by, stolen, after, names_the_newest
):
    """Whichever key led to the held list. A thief may name any key before the one that is configured."""
    _, held = taken(Publisher([ONE, TWO, THREE]).list(4).line, trusted={public(held_by)})
    thief = Publisher([stolen, *after])
    keys = [key.model_dump() for key in thief.keys]
    if names_the_newest:
        keys = [{"key": public(THREE)}, *keys]
    keys = [key | {"epoch": epoch} for epoch, key in enumerate(keys, start=3)]
    if after:
        last = PublisherKey(epoch=keys[-1]["epoch"], key=public(after[0]))
        keys[-1]["signature"] = sign(stolen, last.message(public(stolen)), AUX)
    forged = thief.list(9, keys=keys).line
    for trusted in ({public(stolen)}, {public(ONE), public(TWO)}):
        with pytest.raises(AdvisoriesRefused):
            taken(forged, held, trusted=trusted)


def test_p86_a_key_that_another_publisher_names_as_its_own_is_not_replaced_by_that():
    mine, other = Publisher([TWO]), Publisher([THREE])
    named = [mine.keys[0].model_dump(), other.keys[0].model_dump() | {"epoch": 2}]
    both = {mine.root, other.root}
    claimed = mine.list(1, keys=named).signed(THREE, AUX)
    _, held = taken(claimed.line, trusted={other.root})
    assert taken(mine.list(2).line, held, trusted=both)[1].root == mine.root


def test_a_wrong_chain_of_keys_leads_nowhere():
    forged = ROTATED.keys[1].model_copy(update={"signature": Publisher([THREE, TWO]).keys[1].signature})
    said = json.loads(ROTATED.list(4).line) | {"keys": [key.model_dump() for key in (FIRST.keys[0], forged)]}
    with pytest.raises(UntrustedAdvisories, match="epoch 2"):
        taken(read_list(canonical_json(said)).signed(TWO, AUX).line)
    skipped = [
        key | {"epoch": 5} if key["epoch"] == 2 else key for key in json.loads(ROTATED.list(4).line)["keys"]
    ]
    with pytest.raises(MalformedAdvisories, match="count up"):
        read_list(canonical_json(said | {"keys": skipped}))


def test_a_publisher_signs_one_list_after_the_other_and_hands_over():
    draft = {"issued": "2026-02-01T00:00:00Z", "expires": "2027-02-01T00:00:00Z", "advisories": [entry()]}
    first = publish(draft, ONE, AUX)
    second = publish(draft, ONE, AUX, after=first)
    third = publish(draft, TWO, AUX, after=second, former_secret=ONE)
    _, held = taken(first.line)
    for each in (second, third):
        _, held = taken(each.line, held)
    assert (held.serial, held.epoch) == (3, 2)
    with pytest.raises(UntrustedAdvisories, match="former key"):
        publish(draft, TWO, AUX, after=second)
    with pytest.raises(MalformedAdvisories, match="exactly these fields"):
        publish(draft | {"serial": 9}, ONE, AUX)


def test_the_guides_draft_is_signed_and_means_what_it_says():
    """docs/operate/flaws.md."""
    page = (DOCS / "operate" / "flaws.md").read_text(encoding="utf-8")
    (draft,) = re.findall(r"^```json\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    told = publish(json.loads(draft), ONE, AUX)
    assert read_list(told.line) == told
    (found,) = told.advisories
    patched = replace(KEY, firmware="5.6.0", registered_on="2026-08-01")
    assert found.concern(replace(patched, made_on="2024-05-01")) is Concern.EXPOSED
    assert found.concern(replace(patched, made_on="2026-08-01")) is Concern.NOT
    assert found.concern(patched) is Concern.UNKNOWN


# --- which keys it concerns ---------------------------------------------------------------------------------

KEY = KeyFacts("coldcard", "Coldcard", "5.5.0", None, "2026-03-01")
OLD = [{"line": "", "from": None, "below": "5.6.0"}, {"line": "Q", "from": None, "below": "1.5.0"}]


@pytest.mark.parametrize(
    ("where", "key", "concern"),
    [
        (affected(), KEY, "exposed"),
        (affected("trezor"), KEY, "not"),
        (affected(), replace(KEY, maker=None), "unknown"),
        (affected(models=["Coldcard Q"]), KEY, "not"),
        (affected(models=["Coldcard Q"]), replace(KEY, model=None), "unknown"),
        (affected(firmware=OLD), KEY, "exposed"),
        (affected(firmware=OLD), replace(KEY, firmware="5.6.0"), "not"),
        (affected(firmware=OLD), replace(KEY, firmware="1.4.9Q"), "exposed"),
        (affected(firmware=OLD), replace(KEY, firmware=None), "unknown"),
        (affected(firmware=OLD), replace(KEY, firmware="5.6.0-dirty"), "unknown"),
        # Made at the registration or any time before.
        (affected(made={"from": "2026-03-02", "before": None}), KEY, "not"),
        (affected(made={"from": "2026-01-01", "before": None}), KEY, "unknown"),
        (affected(made={"from": None, "before": "2026-03-02"}), KEY, "exposed"),
        (affected(made={"from": None, "before": "2026-03-01"}), KEY, "unknown"),
        (affected(made={"from": None, "before": "2026-02-01"}), replace(KEY, made_on="2026-02-01"), "not"),
        (
            affected(made={"from": "2026-02-01", "before": None}),
            replace(KEY, made_on="2026-02-01"),
            "exposed",
        ),
        # One thing that is known to be otherwise is enough.
        (affected(models=["Mk"], firmware=OLD), replace(KEY, firmware=None), "not"),
    ],
)
def test_p87_what_is_not_known_is_never_called_safe(where, key, concern):
    assert Advisory.model_validate(entry("A-1", where)).concern(key) == concern


def test_the_worst_of_its_ranges_counts():
    found = Advisory.model_validate(
        entry("A-1", affected("trezor"), affected(firmware=OLD), affected("jade"))
    )
    assert found.concern(KEY) is Concern.EXPOSED
    assert found.concern(replace(KEY, firmware=None)) is Concern.UNKNOWN
    assert found.concern(replace(KEY, maker="ledger")) is Concern.NOT


facts = st.sampled_from


@given(
    st.builds(
        KeyFacts,
        facts([None, "coldcard", "trezor"]),
        facts([None, "Coldcard", "Coldcard Q"]),
        facts([None, "5.5.0", "5.6.0", "1.4.0Q"]),
        facts([None, "2026-01-15", "2026-02-15"]),
        st.just("2026-03-01"),
    ),
    facts([affected(), affected(firmware=OLD), affected(models=["Coldcard Q"]),
           affected(made={"from": "2026-02-01", "before": "2026-02-20"})]),
    facts(["maker", "model", "firmware", "made_on"]),
)  # fmt: skip
def test_p87_knowing_less_never_makes_a_key_safe(key, where, forgotten):
    """Nor does it make one exposed for certain that was safe."""
    found = Advisory.model_validate(entry("A-1", where))
    if found.concern(key) is Concern.EXPOSED:
        assert found.concern(replace(key, **{forgotten: None})) is not Concern.NOT
