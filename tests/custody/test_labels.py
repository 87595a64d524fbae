"""Labels as wallets exchange them (BIP-329): its example, round trips, and damaged lines."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from custody.common.labels import MAX_LINES, Label, origin_of, read_labels, sorted_out, write_labels
from custody.common.text import LONGEST_TEXT
from multisig import Network, encode_address, p2wpkh
from tests.support.examples import examples
from tests.support.wallets import make_vault

TXID = "f91d0a8a78462bc59398f2c5d7a84fcff491c26ba54c4833478b202796c8aafd"
OTHER = "f546156d9044844e02b181026a1a407abfca62e7ea1159f87bbeaa77b4286c74"
ADDRESS = "bc1q34aq5drpuwy3wgl9lhup9892qp6svr8ldzyy7c"
KEY = "0283409659355b6d1cc3c32decd5d561abaac86c37a353b52895a5e6c196d6f448"
XPUB = (
    "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265TMg7usUDFdp"
    "6W1EGMcet8"
)
ORIGIN = "wpkh([d34db33f/84'/0'/1'])"
# The BIP's test vector.
VECTOR = f"""\
{{ "type": "tx", "ref": "{TXID}", "label": "Transaction", "origin": "wpkh([d34db33f/84'/0'/0'])" }}
{{ "type": "addr", "ref": "{ADDRESS}", "label": "Address" }}
{{ "type": "pubkey", "ref": "{KEY}", "label": "Public Key" }}
{{ "type": "input", "ref": "{TXID}:0", "label": "Input" }}
{{ "type": "output", "ref": "{TXID}:1", "label": "Output", "spendable": false }}
{{ "type": "xpub", "ref": "{XPUB}", "label": "Extended Public Key" }}
{{ "type": "tx", "ref": "{OTHER}", "label": "Account #1 Transaction", "origin": "{ORIGIN}" }}
""".encode()
READ = (
    Label("tx", TXID, "Transaction", "wpkh([d34db33f/84'/0'/0'])"),
    Label("addr", ADDRESS, "Address"),
    Label("pubkey", KEY, "Public Key"),
    Label("input", f"{TXID}:0", "Input"),
    Label("output", f"{TXID}:1", "Output", spendable=False),
    Label("xpub", XPUB, "Extended Public Key"),
    Label("tx", OTHER, "Account #1 Transaction", ORIGIN),
)
texts = st.none() | st.text(st.characters(exclude_categories=("Cs",)), max_size=LONGEST_TEXT)
records = st.one_of(
    st.builds(Label, st.just("tx"), st.just(TXID), texts, texts),
    st.builds(Label, st.just("addr"), st.just(ADDRESS), texts),
    st.builds(Label, st.just("output"), st.just(f"{TXID}:1"), texts, texts, st.none() | st.booleans()),
    st.builds(Label, st.just("xpub"), st.just(XPUB), texts, st.just(origin_of(make_vault()))),
)


def test_the_example_of_the_bip():
    found = read_labels(VECTOR)
    assert (tuple(found.records.values()), found.faults, found.unread) == (READ, {}, ())


@given(st.lists(records, max_size=8))
@example(list(READ))
@settings(max_examples=examples(60))
def test_what_is_written_is_read_and_is_so_where_it_came_from(written):
    found = read_labels(write_labels(written))
    assert (list(found.records.values()), found.faults) == (written, {})
    named = {(each.type, each.ref): each for each in written if each.label}
    said, new = sorted_out(named.values(), dict(enumerate(named.values())), Network.MAINNET)
    assert not new
    assert set(said.values()) <= {"named so already"}


@given(st.binary(max_size=400) | st.tuples(st.integers(0, len(VECTOR)), st.binary(max_size=8)))
@settings(max_examples=examples(100))
def test_whatever_is_in_a_file_each_line_is_read_or_its_fault_is_said(given_bytes):
    if isinstance(given_bytes, tuple):
        place, patch = given_bytes
        given_bytes = VECTOR[:place] + patch + VECTOR[place + len(patch) :]
    found = read_labels(given_bytes)
    lines = {number for number, line in enumerate(given_bytes.split(b"\n"), 1) if line.strip()}
    assert {*found.records, *found.faults} == lines
    assert list(read_labels(write_labels(found.records.values())).records.values()) == [
        *found.records.values()
    ]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("{", "not JSON"),
        ("[]", "no JSON object"),
        # Nested too deeply, or unfinished: that depends on the interpreter.
        ("[" * 16_000, "it is n"),
        ('{"type": "tx", "type": "tx"}', "twice"),
        (json.dumps({"type": "wallet", "ref": "x"}), "its type is none of tx, addr"),
        (json.dumps({"type": "tx", "ref": f"{TXID}:0"}), "its ref is no tx"),
        (json.dumps({"type": "tx", "ref": TXID, "label": 5}), "its label is no text"),
        (json.dumps({"type": "tx", "ref": TXID, "label": "x" * (LONGEST_TEXT + 1)}), "its label is no text"),
        (json.dumps({"type": "tx", "ref": TXID, "label": "\ud800"}), "half a surrogate"),
        (json.dumps({"type": "output", "ref": f"{TXID}:1", "spendable": "false"}), "spendable is true or"),
        (json.dumps({"type": "addr", "ref": ADDRESS, "spendable": False}), "of an output alone"),
        (" " * 20_000 + "{}", "too long"),
    ],
)
def test_a_damaged_line_is_said_and_spoils_no_other(line, fault):
    found = read_labels(b"\xef\xbb\xbf" + line.encode() + b"\r\n\r\n" + VECTOR)
    assert fault in found.faults[1]
    assert tuple(found.records) == tuple(range(3, 10))


def test_facts_of_the_chain_beside_a_label_are_not_read():
    line = {"type": "tx", "ref": TXID.upper(), "label": "a", "fee": 5, "rate": {"USD": 105_620.25}}
    found = read_labels(json.dumps(line).encode())
    assert (found.records, found.unread) == ({1: Label("tx", TXID, "a")}, ("fee", "rate"))


def test_a_file_beyond_its_bounds_is_refused_before_it_is_read():
    with pytest.raises(ValueError, match="lines: split it"):
        read_labels(b"{" * 10 + b"\n" * MAX_LINES)


def test_one_output_is_taken_once_and_nothing_of_another_wallet():
    vault, other = make_vault(), make_vault(account=7)
    own = origin_of(vault)
    keys = ",".join(reversed(own.removesuffix("))").split(",")[1:]))
    keys = keys.replace("h", "'").upper()
    written_otherwise = f"wsh(sortedmulti({vault.threshold}, {keys}))#x"
    given = [
        {"type": "output", "ref": f"{TXID}:1", "label": "a", "spendable": False},
        {"type": "output", "ref": f"{TXID.upper()}:001", "label": "b", "spendable": False},
        {"type": "input", "ref": f"{TXID}:1", "label": "c"},
        {"type": "addr", "ref": ADDRESS, "label": "d", "origin": origin_of(other)},
        {"type": "output", "ref": f"{TXID}:2", "spendable": False, "origin": "wpkh([d34db33f/84'/0'/0'])"},
        {"type": "output", "ref": f"{TXID}:3", "spendable": False, "origin": written_otherwise},
    ]
    found = read_labels("\n".join(map(json.dumps, given)).encode())
    said, new = sorted_out([], found.records, Network.MAINNET, vault)
    assert (list(new), found.faults) == ([1, 3, 6], {})
    assert said == {
        2: "not taken: the line 1 names it, too",
        4: f"not taken: it is of another wallet, by its origin {origin_of(other)}",
        5: "not taken: it is of another wallet, by its origin wpkh([d34db33f/84'/0'/0'])",
    }


def test_what_has_another_name_keeps_it_and_addresses_are_compared_as_one_spelling():
    upper = Label("addr", ADDRESS.upper(), "Theirs")
    foreign = Label("addr", encode_address(p2wpkh(bytes.fromhex(KEY)), Network.TESTNET4), "b")
    records = {1: upper, 2: Label("addr", ADDRESS), 3: foreign}
    said, new = sorted_out([Label("addr", ADDRESS, "Ours")], records, Network.MAINNET)
    assert (said[1], said[2], new) == ("not taken: here it is 'Ours'", "not taken: it has no name", {})
    assert "another network" in said[3]
    assert sorted_out([], {1: upper}, Network.MAINNET)[1] == {1: Label("addr", ADDRESS, "Theirs")}
