"""rules show: from the files alone."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from multisig import ChangeTo, build_psbt, sats
from signerd.cli.terminal import Exit
from signerd.core import events
from signerd.core.values import SigningLimits
from signerd.journal import Journal
from tests.support.command import signerd
from tests.support.daemons import prepare
from tests.support.desk import NETWORK, VAULT, VAULT_ID, signed_by, snapshot_of, spend
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
    with Journal(folder, network=NETWORK, limits=SigningLimits(), now=lambda: clock[0]) as journal:
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
        journal.decide("p-2", events.PersonDeclined("no"))
        journal.poll(snapshot_of(spend(), "p-3", vault_id="elsewhere"))
    return folder


def write(state: Path, text: str, name: str = "tried.toml") -> str:
    (state / name).write_text(text)
    return str(state / name)


PER_DAY = '[refuse]\nabove_per_day = "60000 sat"\n'


def test_a_mistake_in_the_file_is_told_with_its_line(state):
    file = write(state, '[refuse]\n\nabove_a_day = "1 BTC"\n')
    ended = signerd("rules", "show", "--file", file, "--json", state=state)
    assert (ended.status, ended.error["code"]) == (Exit.STATE, "rules-invalid")
    assert f"{file}, line 3: refuse.above_a_day: there is no such key" in ended.error["sentence"]


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
