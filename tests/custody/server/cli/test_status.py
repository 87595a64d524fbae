"""The operator's view of a platform: its status, and its jobs."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import Result
from sqlalchemy import select

from custody.common.terminal import Exit
from custody.server.jobs.outbox import BROADCAST, enqueue
from custody.server.mail.jobs import MAIL, WAITING
from custody.server.operations.status import read_status
from custody.server.settings import utc_now
from custody.server.store import Store, sqlite_url
from custody.server.store.models import AuditEventRow, JobRow, LeaseRow
from tests.support.custody import Desk, ok, open_desk
from tests.support.databases import make_sqlite
from tests.support.operator import custody
from tests.support.platform import START


@pytest.fixture
def desk(tmp_path: Path):
    with open_desk(tmp_path) as opened:
        yield opened


def status(tmp_path: Path, *arguments: str):
    answer = custody("status", *arguments, state=tmp_path)
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def test_tells_what_an_operator_asks_first(desk: Desk, tmp_path: Path) -> None:
    desk.deposit(100_000)
    psbt_id = ok(desk.propose(1_000))["psbt_id"]
    for name in ("alice", "bob"):
        desk.approve(name, psbt_id)
    desk.world.platform.background.checkpoints.make()
    with desk.store.write() as db:
        db.add(LeaseRow(name="watcher of regtest", owner="somebody", until=utc_now() + timedelta(hours=1)))
    told = json.loads(status(tmp_path, "--json"))
    assert told["database"]["kind"] == "sqlite"
    assert told["database"]["size_bytes"] > 100_000
    (chain,) = told["figures"]["chains"]
    tip = desk.chain.tip()
    assert (chain["chain"], chain["height"], chain["block_hash"]) == ("regtest", tip.height, tip.hash)
    assert chain["seen_at"].startswith("2026-03-01T12:00:00")
    jobs = {job["kind"]: (job["due"], job["leased"], job["dead"]) for job in told["figures"]["jobs"]}
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
    store = Store.open(database)
    try:
        found = read_status(store, START)
    finally:
        store.close()
    assert found.database.kind == database.split(":", maxsplit=1)[0].split("+", maxsplit=1)[0]
    assert found.database.size_bytes > 0
    assert (found.leases, found.checkpoint_at) == ((), None)


ALICE = "alice@example.org"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    make_sqlite(tmp_path / "custody.db")
    return tmp_path


@pytest.fixture
def store(state: Path):
    opened = Store.open(sqlite_url(state / "custody.db"))
    yield opened
    opened.close()


def add(store: Store, kind: str, subject: str = "a", **changes: object) -> int:
    with store.write() as db:
        enqueue(db, kind, subject, utc_now() - timedelta(minutes=1), {"to": ALICE})
        job = db.scalars(select(JobRow).order_by(JobRow.id.desc())).first()
        for name, value in changes.items():
            setattr(job, name, value)
        return job.id


def dead(store: Store, kind: str, subject: str = "a") -> int:
    tried = {"attempts": 12, "failures": 10, "last_error": "No such mailbox."}
    return add(store, kind, subject, dead_at=utc_now(), **tried)


def run(state: Path, *arguments: str) -> Result:
    return custody("admin", "jobs", *arguments, state=state)


def job(store: Store, job_id: int) -> JobRow | None:
    with store.read() as db:
        return db.get(JobRow, job_id)


def actions(store: Store) -> list[tuple[str, str]]:
    with store.read() as db:
        rows = db.scalars(select(AuditEventRow).order_by(AuditEventRow.position))
        return [(row.action, row.description) for row in rows]


def test_an_empty_platform_says_so(state: Path) -> None:
    assert run(state).stdout == "Nothing waits, and nothing was given up.\n"
    words = status(state)
    for part in ("No chain was read yet.", "No worker runs: ", "The audit log was never signed."):
        assert part in words


def test_lists_every_state_with_the_last_error_and_nothing_that_is_carried(state: Path, store: Store) -> None:
    now = utc_now()
    add(store, MAIL, "due")
    away = {"attempts": 1, "last_error": "The mail server is away."}
    add(store, MAIL, "waiting", run_at=now + timedelta(hours=1), **away)
    add(store, MAIL, "leased", lease_owner="one", lease_until=now + timedelta(hours=1), attempts=1)
    add(store, MAIL, "lapsed", lease_owner="one", lease_until=now - timedelta(seconds=1), attempts=1)
    add(store, MAIL, "done", done_at=now)
    given_up = dead(store, MAIL, "dead")
    add(store, BROADCAST)
    add(store, WAITING, created_at=now + timedelta(hours=1), run_at=now + timedelta(hours=1))
    told = run(state).stdout.splitlines()
    assert told[0].startswith("broadcast: 1 due, 0 waiting, 0 leased, 0 dead, the oldest since 20")
    assert told[1].startswith("mail: 2 due, 1 waiting, 1 leased, 1 dead, the oldest since 20")
    assert told[2].startswith("waiting-mail: 0 due, 1 waiting, 0 leased, 0 dead, the first due at 20")
    assert told[3:] == [
        "ID  STATE    JOB              TRIED     LAST ERROR",
        "2   waiting  mail of waiting  1 time    The mail server is away.",
        f"{given_up}   dead     mail of dead     12 times  No such mailbox.",
    ]
    answer = json.loads(run(state, "--json").stdout)
    assert {kind["kind"]: kind["dead"] for kind in answer["kinds"]} == {BROADCAST: 0, MAIL: 1, WAITING: 0}
    assert [line["state"] for line in answer["jobs"]] == ["waiting", "dead"]
    assert ALICE not in run(state).stdout + run(state, "--json").stdout
    assert run(state, "--after", str(given_up)).stdout.count("\n") == 3


def test_jobs_are_tried_again_at_once_and_as_if_they_had_never_failed(state: Path, store: Store) -> None:
    job_id = dead(store, MAIL)
    assert run(state, "retry", str(job_id)).stdout == f"Job {job_id} (mail of a) is due now.\n"
    (again,) = json.loads(run(state, "retry", str(job_id), "--json").stdout)
    assert (again["id"], again["state"]) == (job_id, "due")
    found = job(store, job_id)
    assert (found.dead_at, found.failures, found.run_at <= utc_now()) == (None, 0, True)
    assert actions(store) == [("JOB_RETRIED", f"job {job_id}, mail of a")] * 2
    # All of a kind; b has a newer one.
    ids, other = [dead(store, MAIL, subject) for subject in "bcd"], dead(store, BROADCAST)
    add(store, MAIL, "b")
    assert run(state, "retry", "--kind", MAIL).exit_code == 0
    assert [job(store, each).dead_at is None for each in (*ids, other)] == [False, True, True, False]
    assert run(state, "retry", "--kind", "carrier-pigeon").exit_code == Exit.USAGE


def test_what_must_not_be_tried_again_is_refused(state: Path, store: Store) -> None:
    """Trying again would do it twice."""
    cases = {
        dead(store, MAIL): "has replaced job",
        add(store, MAIL, lease_owner="one", lease_until=utc_now()): "try again in a moment",
        4711: "no open or dead job",
    }
    for job_id, sentence in cases.items():
        answer = run(state, "retry", str(job_id))
        assert (answer.exit_code, sentence in answer.stderr) == (Exit.NOT_DECIDED, True), answer.stderr
    assert run(state, "retry").exit_code == Exit.USAGE
    assert run(state, "retry", "1", "--kind", MAIL).exit_code == Exit.USAGE
    assert actions(store) == []


def test_a_job_is_thrown_away_and_the_audit_log_keeps_its_name(state: Path, store: Store) -> None:
    """But not a signed payment that waits: its coins would stay locked for ever (P14)."""
    waiting, given_up = add(store, MAIL), dead(store, BROADCAST)
    for job_id in (waiting, given_up):
        assert json.loads(run(state, "discard", str(job_id), "--json").stdout)["id"] == job_id
        assert job(store, job_id) is None
    assert [action for action, _ in actions(store)] == ["JOB_DISCARDED", "JOB_DISCARDED"]
    assert run(state, "discard", str(waiting)).exit_code == Exit.NOT_DECIDED
    leased = add(store, MAIL, lease_owner="one", lease_until=utc_now() + timedelta(minutes=1))
    for job_id, words in ((add(store, BROADCAST), "signed payment"), (leased, "try again in a moment")):
        assert words in run(state, "discard", str(job_id)).stderr
        assert job(store, job_id) is not None


def test_without_a_state_folder_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUSTODY_STATE", raising=False)
    assert custody("admin", "jobs").exit_code == Exit.USAGE
