"""``custody vault history``, ``coins`` and ``tokens``: what they show, and the files that they write."""

import csv
import json
import stat

from custody.cli import histories
from custody.cli.histories import KINDS, STATES
from custody.common.spreadsheets import COIN_COLUMNS
from custody.common.terminal import Exit
from custody.schemas.history import CoinState, MovementKind
from tests.support.custody import SHOP, ok
from tests.support.token_desk import BOB, TokenDesk


def test_the_words_are_the_schemas():
    assert tuple(KINDS) == tuple(MovementKind)
    assert tuple(STATES) == tuple(CoinState)


def test_p63_history_and_coins_at_the_terminal_and_as_files(service, desk, tmp_path, monkeypatch):
    monkeypatch.setattr(histories, "PAGE", 1)
    desk.enter("=1+1", SHOP)
    psbt_id = ok(desk.propose(250_000, recipients=[SHOP], description="=HYPERLINK(1)"))["psbt_id"]
    desk.sign_off(psbt_id)
    desk.settle()
    desk.mine()
    shown = service("vault", "history", "Treasury").stdout
    assert "=HYPERLINK(1)" in shown
    listed = json.loads(service("vault", "history", "Treasury", "--json", "--lines", "2").stdout)
    assert [one["kind"] for one in listed] == ["payment", "deposit"]
    file = tmp_path / "history.csv"
    done = service("vault", "history", "Treasury", "--csv", str(file), "--json")
    assert json.loads(done.stdout) == {"file": str(file), "rows": 3}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["kind"] for row in rows] == ["deposit", "deposit", "payment"]
    payment, told = listed[0], rows[-1]
    assert (told["title"], told["names"]) == ("'=HYPERLINK(1)", "'=1+1")
    assert told["time (UTC)"] == f"{payment['at'][:19]}Z"
    assert told["balance (sats)"] == str(payment["balance_sats"])
    assert (told["amount (sats)"], told["amount (BTC)"]) == (
        str(payment["amount_sats"]), f"-0.00{-payment['amount_sats']}",
    )  # fmt: skip
    coins = tmp_path / "coins.csv"
    assert service("vault", "coins", "Treasury", "--csv", str(coins)).exit_code == Exit.OK
    with coins.open(encoding="utf-8", newline="") as lines:
        header, *rows = csv.reader(lines)
    assert list(header) == [*COIN_COLUMNS]
    assert sum(int(row[1]) for row in rows) == payment["balance_sats"]
    assert "No coins." in service("vault", "coins", "Treasury", "--state", "immature").stdout
    assert "No movements." in service("vault", "history", "Treasury", "--to", "2001-01-01").stdout


def test_a_statement_at_the_terminal_and_as_a_file(service, desk, tmp_path):
    month = f"{desk.world.clock():%Y-%m}"
    assert "is not closed" in service("vault", "statement", "Treasury", month).stderr
    desk.later(days=32)
    desk.mine(11)
    said = json.loads(service("vault", "statement", "Treasury", month, "--json").stdout)
    shown = service("vault", "statement", "Treasury", month).stdout.splitlines()
    assert ["opening balance" in shown[1], "closing balance" in shown[-1]] == [True, True]
    assert len(shown) == said["count"] + 3
    file = tmp_path / "statement.csv"
    assert service("vault", "statement", "Treasury", month, "--csv", str(file)).exit_code == Exit.OK
    with file.open(encoding="utf-8", newline="") as lines:
        opening, *moved, closing = csv.DictReader(lines)
    assert opening["balance (sats)"] == str(said["opening_sats"])
    assert closing["balance (sats)"] == str(said["closing_sats"]) == moved[-1]["balance (sats)"]
    assert [row["txid"] for row in moved] == [one["txid"] for one in said["movements"]]


def test_a_coin_is_set_aside_and_released_at_the_terminal(service, desk, tmp_path):
    largest = json.loads(service("vault", "coins", "Treasury", "--json").stdout)[0]
    coin, file = f"{largest['txid']}:{largest['vout']}", tmp_path / "coins.csv"
    why = ("--reason", "Audit of 2026", "--until", "2099-01-01")
    assert "No new proposal" in service("vault", "set-aside", "Treasury", coin, *why).stdout
    (_, shown) = service("vault", "coins", "Treasury", "--state", "set-aside").stdout.splitlines()
    assert shown.endswith("Audit of 2026 (until 1 Jan 2099, 00:00 UTC)")
    service("vault", "coins", "Treasury", "--csv", str(file))
    with file.open(encoding="utf-8", newline="") as lines:
        row, *_ = csv.DictReader(lines)
    assert (row["set aside"], row["until (UTC)"]) == ("Audit of 2026", "2099-01-01T00:00:00Z")
    assert "may spend" in service("vault", "release", "Treasury", coin).stdout
    assert "is not set aside" in service("vault", "release", "Treasury", coin).stderr


def test_tokens_at_the_terminal_and_as_a_file(service, desk, tmp_path):
    tokens = TokenDesk(desk)
    tokens.fund(200_000, 200_000)
    assert "No movements of tokens." in service("vault", "tokens", "Treasury").stdout
    uid = tokens.started()
    tokens.done(uid, "transfer", BOB, 5)
    shown = service("vault", "tokens", "Treasury").stdout.splitlines()
    assert [line.split()[5] for line in shown[1:]] == ["transfer", "init"]
    (newest, first) = json.loads(service("vault", "tokens", "Treasury", "--json").stdout)
    file = tmp_path / "tokens.csv"
    done = service("vault", "tokens", "Treasury", "--contract", str(uid), "--csv", str(file), "--json")
    assert json.loads(done.stdout) == {"file": str(file), "rows": 2}
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    told = [(one["function"], one["amount"], one["holding"]) for one in (first, newest)]
    assert [(row["call"], row["amount"], row["holding"]) for row in rows] == told
    assert rows[-1]["amount (raw)"].startswith("-")


def test_a_file_that_cannot_be_written_is_told_and_nothing_is_left(service, tmp_path):
    done = service("vault", "history", "Treasury", "--csv", str(tmp_path / "none" / "history.csv"))
    assert done.exit_code == Exit.FAILED
    assert "cannot be written" in done.stderr
    assert list(tmp_path.glob("*.new")) == []
