"""``custody status``."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from custody.server.cli import app
from custody.server.cli.status import _ago
from custody.server.service.operations.status import read_status
from custody.server.settings import utc_now
from custody.server.store.models import Lease
from tests.support.custody import Desk, ok, open_desk
from tests.support.platform import START


@pytest.fixture
def desk(tmp_path: Path):
    with open_desk(tmp_path) as opened:
        yield opened


def status(tmp_path: Path, *arguments: str):
    answer = CliRunner().invoke(app, ["status", "--state", str(tmp_path), *arguments])
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def test_tells_what_an_operator_asks_first(desk: Desk, tmp_path: Path) -> None:
    desk.deposit(100_000)
    psbt_id = ok(desk.propose(1_000))["psbt_id"]
    for name in ("alice", "bob"):
        desk.approve(name, psbt_id)
    desk.world.platform.background.checkpoints.make()
    with desk.world.platform.services.store.write() as db:
        db.add(Lease(name="watcher of regtest", owner="somebody", until=utc_now() + timedelta(hours=1)))
    told = json.loads(status(tmp_path, "--json"))
    assert told["database"]["kind"] == "sqlite"
    assert told["database"]["size_bytes"] > 100_000
    (chain,) = told["figures"]["chains"]
    tip = desk.chain.tip()
    assert (chain["chain"], chain["height"], chain["block_hash"]) == ("regtest", tip.height, tip.hash)
    assert chain["seen_at"].startswith("2026-03-01T12:00:00")
    jobs = {job["kind"]: (job["waiting"], job["leased"], job["dead"]) for job in told["figures"]["jobs"]}
    assert jobs["broadcast"] == (1, 0, 0)
    assert [(found["status"], found["count"]) for found in told["figures"]["proposals"]] == [("SIGNED", 1)]
    assert told["checkpoint_at"].startswith("2026-03-01T12:00:00")
    assert [(lease["name"], lease["held"]) for lease in told["leases"]] == [("watcher of regtest", True)]
    words = status(tmp_path)
    for part in (
        " on sqlite, ",
        f"regtest: block {tip.height}, read ",
        "jobs, broadcast: 1 waiting, 0 under way, 0 given up",
        "proposals, SIGNED: 1,",
        "watcher of regtest: a process has it",
        "The audit log was signed ",
    ):
        assert part in words


def test_a_platform_on_which_nothing_happened(database: str, tmp_path: Path) -> None:
    """On PostgreSQL too, whose size is asked for in another way."""
    from custody.server.store import Store

    store = Store.open(database)
    try:
        found = read_status(store, START)
    finally:
        store.close()
    assert found.database.kind == database.split(":", maxsplit=1)[0].split("+", maxsplit=1)[0]
    assert found.database.size_bytes > 0
    assert (found.leases, found.checkpoint_at) == ((), None)


def test_says_so_where_nothing_was_read_or_signed(tmp_path: Path) -> None:
    with open_desk(tmp_path):
        pass
    words = status(tmp_path)
    assert "No chain was read yet." in words
    assert "No worker runs: " in words
    assert "The audit log was never signed." in words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s ago"),
        (119, "119 s ago"),
        (120, "2 min ago"),
        (7_200, "2 h ago"),
        (200_000, "2 d ago"),
        (-5, "0 s ago"),
    ],
)
def test_ages_in_words(seconds: int, words: str) -> None:
    assert _ago(START, START + timedelta(seconds=seconds)) == words
