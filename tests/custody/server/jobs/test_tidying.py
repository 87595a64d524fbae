"""Rows that strangers can cause are deleted, rows that count stay, and one bad row stops nothing else."""

import pytest
from sqlalchemy import func, select

from custody.schemas.auth import REFRESH_COOKIE
from custody.server.errors import DatabaseUnavailable
from custody.server.jobs import tidying
from custody.server.jobs.outbox import enqueue
from custody.server.jobs.tidying import OVER, Tidying, sweep_all
from custody.server.mail import jobs as mail_jobs
from custody.server.store.models import (
    AccessTokenRow,
    JobRow,
    OtpChallengeRow,
    RefreshTokenRow,
    SignInSessionRow,
)
from tests.support.accounts import CAROL, register, sign_in
from tests.support.platform import World

PARTS = (*OVER, mail_jobs.forget_sent)


def tidy(world: World) -> int:
    return Tidying(world.platform.services.store, world.clock, PARTS)()


def count(world: World, *tables: type) -> int:
    with world.platform.services.store.read() as db:
        return sum(db.scalar(select(func.count()).select_from(table)) or 0 for table in tables)


def ask_for_resets(world: World, number: int) -> None:
    for each in range(number):
        email = f"nobody{each}@example.org"
        assert world.http.post("/auth/request-password-reset", json={"email": email}).status_code == 200


def test_mail_that_a_stranger_asked_for_is_deleted_within_a_day(world: World, monkeypatch) -> None:
    """In short transactions."""
    monkeypatch.setattr(tidying, "BATCH", 2)
    ask_for_resets(world, 3)
    world.clock.advance(days=2)
    assert tidy(world) == 0, "what waits is not over"
    world.deliver_mail()
    world.clock.advance(hours=23)
    assert tidy(world) == 0
    world.clock.advance(hours=1)
    assert tidy(world) == 3
    assert count(world, JobRow) == 0


def test_challenges_are_kept_as_long_as_they_count(world: World) -> None:
    register(world)
    for _ in range(20):
        assert world.login(CAROL).status_code == 200
    world.clock.advance(minutes=59)
    tidy(world)
    assert world.login(CAROL).status_code == 429
    world.clock.advance(minutes=1)
    assert tidy(world) >= 20
    assert count(world, OtpChallengeRow) == 0
    assert world.login(CAROL).status_code == 200


def test_a_session_is_kept_as_long_as_it_can_be_renewed(world: World) -> None:
    register(world)
    session, _other = sign_in(world), sign_in(world)
    world.clock.advance(days=29)
    tidy(world)
    renewed = session.refresh()
    assert renewed.status_code == 200
    session.cookie = renewed.cookies[REFRESH_COOKIE]
    world.clock.advance(days=29)
    tidy(world)
    assert count(world, SignInSessionRow) == 1
    assert session.refresh().status_code == 200
    world.clock.advance(days=30, minutes=15)
    tidy(world)
    assert count(world, SignInSessionRow, AccessTokenRow, RefreshTokenRow) == 0


def test_finished_jobs_of_every_kind_go_and_open_ones_never(world: World) -> None:
    store, now = world.platform.services.store, world.clock()
    with store.write() as db:
        for kind in ("done", "dead", "open"):
            enqueue(db, kind, "a", now)
            enqueue(db, kind, "b", now)
        for job in db.scalars(select(JobRow).where(JobRow.kind == "done")):
            job.done_at = now
        for job in db.scalars(select(JobRow).where(JobRow.kind == "dead")):
            job.dead_at = now
    for days, left in ((7, 4), (23, 2), (365, 2)):
        world.clock.advance(days=days, seconds=-1)
        before = count(world, JobRow)
        tidy(world)
        assert count(world, JobRow) == before
        world.clock.advance(seconds=1)
        tidy(world)
        assert count(world, JobRow) == left


class Part:
    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.ran = 0

    def __call__(self) -> int:
        self.ran += 1
        if self.error is not None:
            raise self.error
        return 2


def test_a_part_that_fails_delays_no_other_and_is_logged() -> None:
    """But without the database none is tried in vain."""
    parts = Part(), Part(ValueError("a bad row")), Part()
    with pytest.raises(ValueError, match="a bad row"):
        sweep_all(parts)
    assert [part.ran for part in parts] == [1, 1, 1]
    assert sweep_all((parts[0], parts[2])) == 4
    with pytest.raises(DatabaseUnavailable):
        sweep_all((Part(DatabaseUnavailable("It is gone.")), parts[0]))
    assert parts[0].ran == 2
