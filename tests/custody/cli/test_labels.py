"""``custody vault labels``: a file for other wallets, and what of another's is taken (BIP-329)."""

import json
import stat

import pytest

from custody.common.labels import Label, read_labels, write_labels
from custody.common.terminal import Exit
from multisig import Network, encode_address
from tests.support.custody import CAFE, SHOP, ok
from tests.support.look_alikes import alike
from tests.support.wallets import foreign_script

NEW = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"


def other(number):
    return encode_address(foreign_script(f"{number}"), Network.REGTEST)


@pytest.fixture
def labels(custody, account):
    """`custody vault labels` of the administrator."""
    return lambda *words: custody("vault", "labels", *words, "--yes", env=account)


def coins_of(desk, **filters):
    where = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    found = ok(desk.admin.get("/api/v1/vault-coins", **where, **filters))["coins"]
    return {f"{one['txid']}:{one['vout']}": one for one in found}


def coin_of(desk, sats):
    """The outpoint of a new deposit."""
    desk.deposit(sats)
    (outpoint,) = coins_of(desk, min_sats=sats, max_sats=sats)
    return outpoint


def test_what_was_exported_comes_back_the_same_and_other_names_are_entered(labels, desk, tmp_path):
    desk.enter("Acme", SHOP)
    psbt_id = ok(desk.propose(250_000, recipients=[SHOP], description="Invoice\n7 “May”"))["psbt_id"]
    desk.sign_off(psbt_id)
    desk.settle()
    desk.mine()
    coin = coin_of(desk, 40_000)
    ok(desk.tell("set-coin-aside", vault_id=desk.vault["id"], coin=coin, reason="Of an unknown sender"))
    file, theirs = tmp_path / "labels.jsonl", tmp_path / "theirs.jsonl"
    assert labels("Treasury", "--export", str(file), "--json").exit_code == Exit.OK
    again = labels("Treasury", "--export", str(file))
    assert (again.exit_code, "labels.jsonl is there already" in again.stderr) == (Exit.FAILED, True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    written = list(read_labels(file.read_bytes()).records.values())
    assert {each.type for each in written} == {"addr", "tx", "output", "xpub"}
    (aside,) = [each for each in written if each.type == "output"]
    assert (aside.ref, aside.label, aside.spendable) == (coin, "Of an unknown sender", False)
    assert {each.label for each in written if each.type == "tx"} == {"Invoice\n7 “May”"}
    again = json.loads(labels("Treasury", "--import", str(file), "--json").stdout)
    assert {each["result"] for each in again} == {"named so already"}
    (payment,) = [each for each in written if each.type == "tx"]
    given = [
        Label("addr", NEW.upper(), "New"),
        Label("addr", SHOP, "Not Acme"),
        Label("addr", CAFE, "ACME"),
        Label("addr", other(1), "x" * 101),
        Label("addr", other(2), SHOP),
        Label("addr", other(3), "hidden\u200bname"),
        Label("addr", other(4), f"One\n  {SHOP}  Two"),
        Label("addr", NEW, "New, once more"),
        Label("addr", alike(SHOP), "Acme, new"),
        Label("tx", payment.ref, "Another"),
        Label("tx", "ab" * 32, "Not ours"),
        Label("output", f"{payment.ref}:0", "Coin"),
        Label("output", f"{payment.ref}:7", "No coin of ours", spendable=False),
    ]
    theirs.write_bytes(write_labels(given) + b"nonsense\n")
    done = labels("Treasury", "--import", str(theirs), "--json")
    results = [each["result"] for each in json.loads(done.stdout)]
    assert (results[0], f"  {NEW}  New\n" in done.stderr) == ("taken", True)
    assert "6 addresses are to get a name" in done.stderr
    assert [each in done.stderr for each in (alike(SHOP), ":7", "to be set aside")] == [False] * 3
    assert f"\n  {SHOP}" not in done.stderr, "no name adds a line to what is asked about"
    words = (
        "here it is 'Acme'",
        "has this name",
        "100 characters",
        "reads as an address",
        "U+200B",
        "U+000A",
        "line 1 names it, too",
        f"looks like Acme in the address book, {SHOP} and is another",
    )
    others = (
        "here it is 'Invoice",
        "where it is proposed",
        "no such names are kept",
        "not taken",
        "not read",
    )
    for result, expected in zip(results[1:], (*words, *others), strict=True):
        assert expected in result
        assert "request" not in result, "it is a line of a file"
    table = labels("Treasury", "--import", str(theirs)).stdout
    assert f"{'x' * 40}  " in table
    assert "x" * 41 not in table
    book = ok(desk.admin.get("/api/v1/get-whitelist-addresses", workspace_id=desk.workspace_id))
    assert [(one["name"], one["address"]) for one in book] == [("Acme", SHOP), ("New", NEW)]


def test_more_than_a_person_looks_at_is_refused_as_a_whole(labels, tmp_path):
    file, coins = tmp_path / "labels.jsonl", (f"{'ab' * 32}:{number}" for number in range(1_001))
    file.write_bytes(write_labels([Label("output", coin, spendable=False) for coin in coins]))
    done = labels("Treasury", "--import", str(file))
    assert done.exit_code == Exit.NOT_DECIDED
    assert "1,001 of its lines are to be taken: 1,000 at once at most" in done.stderr


def test_a_coin_that_is_not_spendable_elsewhere_is_set_aside(labels, desk, tmp_path):
    coin, file = coin_of(desk, 50_000), tmp_path / "labels.jsonl"
    given = [
        Label("output", coin, "Dust of a stranger", spendable=False),
        Label("output", coin_of(desk, 60_000), spendable=False),
    ]
    file.write_bytes(write_labels(given))
    lines = json.loads(labels("Treasury", "--import", str(file), "--json").stdout)
    assert [one["result"] for one in lines] == ["taken", "taken"]
    aside = coins_of(desk, state="set-aside")
    reasons = [aside[each.ref]["set_aside"]["reason"] for each in given]
    assert reasons == ["Dust of a stranger", "Not spendable in another wallet"]


def test_where_a_second_person_confirms_a_name_waits_for_one(labels, desk, tmp_path):
    desk.world.member(1, "eve@example.org", "Administrator")
    ok(desk.tell("update-second-person-rule", is_on=True, confirming_role_id=1))
    file = tmp_path / "theirs.jsonl"
    file.write_bytes(write_labels([Label("addr", CAFE, "Café")]))
    (line,) = json.loads(labels("Treasury", "--import", str(file), "--json").stdout)
    assert line["result"].startswith("waits for a second person: change ")


def test_who_may_not_see_the_address_book_gets_the_other_names(custody, account, desk, tmp_path):
    file = tmp_path / "labels.jsonl"
    own = account | {"CUSTODY_EMAIL": "bob@example.org"}
    done = custody("vault", "labels", "Treasury", "--export", str(file), env=own)
    assert (done.exit_code, "Without the address book" in done.stderr) == (Exit.OK, True)
    assert "addr" not in {each.type for each in read_labels(file.read_bytes()).records.values()}


def test_one_file_is_named(labels, tmp_path):
    assert labels("Treasury").exit_code == Exit.USAGE
    missing = labels("Treasury", "--import", str(tmp_path / "none"))
    assert (missing.exit_code, "cannot be read" in missing.stderr) == (Exit.FAILED, True)
