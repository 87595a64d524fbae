"""rules show, rules test: from the files alone, with a daemon and without one."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from multisig import ChangeTo, build_psbt, sats
from signerd.cli.terminal import Exit
from signerd.core import events
from signerd.core.values import Limits
from signerd.journal import Journal
from tests.support.command import is_tame, signerd
from tests.support.daemons import prepare
from tests.support.desk import NETWORK, VAULT, VAULT_ID, signed_by, snapshot_of, spend
from tests.support.served import make_outer, served_daemon
from tests.support.wallets import ALICE, fund, pay

CONFIG = 'network = "regtest"\n[platform]\nurl = "http://127.0.0.1:8080"\n'
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A person signed one proposal, declined another an hour later, and never pinned the vault of a third."""
    folder = tmp_path / "s"
    folder.mkdir(mode=0o700)
    prepare(folder)
    (folder / "config.toml").write_text(CONFIG)
    clock = [NOON]
    with Journal(folder, network=NETWORK, limits=Limits(), now=lambda: clock[0]) as journal:
        first = snapshot_of(spend())
        journal.poll(first)
        journal.decide("p-1", events.Approved(journal.review("p-1").digest))
        journal.decide("p-1", events.DeviceFound("d"))
        journal.decide("p-1", events.DeviceReturned(signed_by(ALICE, first)))
        clock[0] += timedelta(hours=1)
        coins = [fund(VAULT, 100_000, salt=9)]
        journal.poll(
            snapshot_of(build_psbt(VAULT, coins, [pay(50_000), ChangeTo(sats(49_000), 1, 8)], 0), "p-2")
        )
        journal.decide("p-2", events.Refused("no"))
        journal.poll(snapshot_of(spend(), "p-3", vault_id="elsewhere"))
    return folder


def write(state: Path, text: str, name: str = "tried.toml") -> str:
    (state / name).write_text(text)
    return str(state / name)


PER_DAY = '[refuse]\nabove_per_day = "60000 sat"\n'


def test_what_would_have_happened_to_past_proposals(state):
    lines = signerd("rules", "test", write(state, PER_DAY), "--json", state=state).json
    said = [(line["psbt_id"], line["paid_sats"], line["decided"], line["answer"]) for line in lines]
    assert said == [
        ("p-1", 50_000, "signed", "pass"),
        ("p-2", 50_000, "declined", "refuse"),
        ("p-3", None, "refused-by-a-check", "not-judged"),
    ]
    assert lines[0]["at"] == "2026-01-02T12:00:00Z"
    assert (
        "0.00100000 BTC (100,000 sats) would be paid from all vaults within 24 hours"
        in lines[1]["because"][0]
    )


def test_for_a_person_it_is_a_table(state):
    ended = signerd("rules", "test", write(state, PER_DAY), state=state)
    assert ended.status == Exit.OK
    assert is_tame(ended.out)
    header, first, second, third = ended.out.splitlines()
    assert header.split("  ")[0] == "PROPOSAL"
    assert [cell.strip() for cell in first.split("  ") if cell.strip()] == [
        "p-1",
        "2026-01-02 12:00:00",
        "0.00050000 BTC (50,000 sats)",
        "signed",
        "pass",
    ]
    assert "your rules refuse it." in second
    assert third.endswith("not judged")


def test_where_nothing_ever_was_it_says_so(tmp_path):
    folder = tmp_path / "s"
    folder.mkdir(mode=0o700)
    prepare(folder)
    (folder / "config.toml").write_text(CONFIG)
    assert (
        signerd("rules", "test", write(folder, PER_DAY), state=folder).out == "No proposal was ever here.\n"
    )


def test_it_only_reads(state):
    def stored():
        with closing(sqlite3.connect(state / "journal.sqlite3")) as database, database:
            dump = list(database.iterdump())
        database.close()
        return dump

    before = stored()
    signerd("rules", "test", write(state, PER_DAY), state=state)
    assert stored() == before


def test_it_reads_beside_a_daemon(tmp_path):
    with served_daemon(tmp_path / "s", make_outer(tmp_path)) as daemon:
        daemon.until(lambda: bool(daemon.service.journal.records()))
        (daemon.state / "config.toml").write_text(CONFIG)
        file = write(tmp_path, "[ask]\nalways = true\n")
        lines = signerd("rules", "test", file, "--json", state=daemon.state).json
    assert [(line["psbt_id"], line["decided"], line["answer"]) for line in lines] == [
        ("p-1", "not-decided", "ask")
    ]


@pytest.mark.parametrize("command", [["test"], ["show", "--file"]])
def test_a_mistake_in_the_file_is_told_with_its_line(state, command):
    file = write(state, '[refuse]\n\nabove_a_day = "1 BTC"\n')
    ended = signerd("rules", *command, file, "--json", state=state)
    assert (ended.status, ended.error["code"]) == (Exit.STATE, "rules-invalid")
    assert f"{file}, line 3: refuse.above_a_day: there is no such key" in ended.error["sentence"]


def test_a_damaged_journal_is_told_and_left_where_it_is(state):
    (state / "journal.sqlite3").write_bytes(b"this is no database" * 500)
    ended = signerd("rules", "test", write(state, PER_DAY), "--json", state=state)
    assert (ended.status, ended.error["code"]) == (Exit.STATE, "journal-corrupted")
    assert not list(state.glob("damaged-*"))


def test_the_rules_that_count_are_shown(state):
    path = write(state, f"[vaults.{VAULT_ID}.ask]\nalways = true\n{PER_DAY}", "rules.toml")
    ended = signerd("rules", "show", state=state)
    assert f"Rules of {path}" in ended.out
    assert (
        "refuse: more than 0.00060000 BTC (60,000 sats) within 24 hours, from all vaults together"
        "  [rule-refuse-per-day]" in ended.out
    )
    assert "when it started" in ended.out
    views = signerd("rules", "show", "--json", state=state).json
    assert [(view["name"], view["vault_id"]) for view in views] == [
        ("rule-refuse-per-day", None),
        ("rule-vault-ask-always", VAULT_ID),
    ]


def test_without_rules_it_says_so(state):
    assert "No rules" in signerd("rules", "show", state=state).out
    assert signerd("rules", "show", "--json", state=state).json == []


def test_without_a_configuration_the_network_is_not_known(tmp_path):
    ended = signerd("rules", "show", "--json", state=tmp_path)
    assert (ended.status, ended.error["code"]) == (Exit.STATE, "config-missing")
