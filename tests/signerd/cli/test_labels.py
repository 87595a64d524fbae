"""``signerd labels``: the person's own names as a file for other wallets, and what of another's is taken
(BIP-329).
"""

import pytest

from custody.common.labels import Label, read_labels, write_labels
from custody.common.terminal import Exit
from multisig import RECEIVE, Network, encode_address
from signerd.account.config import LONGEST_LABEL, load_config
from tests.support.command import signerd
from tests.support.desk import VAULT, prepared_journal
from tests.support.look_alikes import alike
from tests.support.wallets import foreign_script

ACME, BANK, CAFE, OTHER, THIRD = (
    encode_address(foreign_script(name), Network.REGTEST) for name in ("acme", "bank", "cafe", "x", "y")
)
CONFIG = f"""\
network = "regtest"
label = "Ledger of Ada"
platform = {{url = "http://127.0.0.1:1"}}

[addresses] # of payees
Acme = "{ACME.upper()}"

[limits]
max_fee_rate = 50
"""


@pytest.fixture
def state(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    prepared_journal(folder).close()
    (folder / "config.toml").write_text(CONFIG)
    return folder


def results(state, file, *more, ends=Exit.OK):
    done = signerd("labels", "--import", str(file), "--yes", "--json", *more, state=state, ends=ends)
    return [each["result"] for each in done.json] if ends is Exit.OK else done


def test_what_was_exported_comes_back_the_same(state, tmp_path):
    file, again = tmp_path / "labels.jsonl", tmp_path / "again.jsonl"
    signerd("labels", "--export", str(file), state=state)
    key, *others = [each for each in read_labels(file.read_bytes()).records.values() if each.type == "xpub"]
    assert (key.label, others) == ("Ledger of Ada", [])
    assert key.ref in {str(each.xpub) for each in VAULT.cosigners}
    assert set(results(state, file)) == {"named so already"}
    assert (state / "config.toml").read_text() == CONFIG
    # On a new machine: without its address book.
    (state / "config.toml").write_text(CONFIG[: CONFIG.index("[addresses]")])
    assert sorted(results(state, file)) == ["named so already", "taken"]
    signerd("labels", "--export", str(again), state=state)
    assert again.read_bytes() == file.read_bytes()


def test_new_names_are_taken_by_the_address_books_own_rules_and_no_other(state, tmp_path):
    file = tmp_path / "theirs.jsonl"
    given = [
        Label("addr", BANK, 'The "bank"'),
        Label("addr", ACME, "Not Acme"),
        Label("addr", CAFE, "ACME"),
        Label("addr", BANK, "Bank again"),
        Label("addr", OTHER, "x" * (LONGEST_LABEL + 1)),
        Label("addr", THIRD, "hid\u200bden"),
        Label("addr", alike(ACME), "Acme, new"),
        Label("addr", alike(VAULT.address(RECEIVE, 0)), "Our vault"),
        Label("tx", "ab" * 32, "Rent"),
    ]
    file.write_bytes(write_labels(given))
    taken, *others = results(state, file)
    assert taken == "taken"
    words = (
        "here it is 'Acme'", "has this name", "line 1 names it, too", f"1 to {LONGEST_LABEL}", "U+200B",
        f"looks like {ACME}", "only their ends",
    )  # fmt: skip
    for result, expected in zip(others, (*words, "no such names"), strict=True):
        assert expected in result
    config = load_config(state / "config.toml")
    assert dict(config.addresses) == {"Acme": ACME.upper(), 'The "bank"': BANK}
    assert (config.limits.max_fee_rate, "# of payees" in (state / "config.toml").read_text()) == (50, True)


def test_a_no_or_a_table_of_another_form_changes_nothing(state, tmp_path):
    file, path = tmp_path / "theirs.jsonl", state / "config.toml"
    file.write_bytes(write_labels([Label("addr", BANK, "Bank")]))
    signerd("labels", "--import", str(file), state=state, typed="n\n", ends=Exit.DECLINED)
    assert path.read_text() == CONFIG
    inline = (
        f'network = "regtest"\naddresses = {{Acme = "{ACME}"}}\nplatform = {{url = "http://127.0.0.1:1"}}\n'
    )
    path.write_text(inline)
    refused = signerd("labels", "--import", str(file), "--yes", state=state, ends=Exit.STATE)
    assert "another form than a table [addresses]" in refused.err
    assert path.read_text() == inline
    signerd("labels", state=state, ends=Exit.USAGE)
