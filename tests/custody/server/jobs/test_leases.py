"""Leases: taken, renewed, lapsed, taken over; a holder that slept past its lease writes nothing."""

import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import select

from custody.server.jobs.leases import LEASE, MAX_HOLD, Lease, LeaseLost
from custody.server.jobs.workers import alone
from custody.server.store.models import LeaseRow


@pytest.fixture
def leads(store, clock):
    return [Lease(store, clock, secrets.token_bytes, "watcher of regtest") for _ in range(2)]


def has_it(lead):
    with lead.work() as held:
        return held is not None


def test_one_has_it_and_keeps_it_until_it_lapses(leads, clock):
    first, second = leads
    for _ in range(30):
        assert (has_it(first), has_it(second)) == (True, False)
        clock.advance(seconds=5)
    first.release()
    assert has_it(first)
    clock.now += LEASE - timedelta(milliseconds=1)
    assert not has_it(second)
    clock.advance(milliseconds=1)
    assert (has_it(second), has_it(first)) == (True, False)


def test_a_released_one_is_free_at_once_and_only_its_holder_releases_it(leads):
    first, second = leads
    assert has_it(first)
    second.release()
    assert not has_it(second)
    first.release()
    first.release()
    assert has_it(second)


def test_a_holder_that_slept_past_its_lease_writes_nothing(store, leads, clock):
    """It read the chain and was stopped, and another followed the chain: its view is the older one (P36).
    Nor where it has a newer lease by then: the name of the process is the same, the lease is not.
    """
    first, second = leads

    def is_lost(held):
        with store.write() as db, pytest.raises(LeaseLost):
            held.require(db)

    with first.work() as before:
        clock.now += LEASE
        with second.work() as other, store.write() as db:
            other.require(db)
        is_lost(before)
        second.release()
        with first.work() as after, store.write() as db:
            after.require(db)
        is_lost(before)


def test_a_lapsed_one_that_nobody_took_is_as_good_as_before(store, leads, clock):
    first, _ = leads
    with first.work() as held:
        clock.now += 2 * LEASE
        with store.write() as db:
            held.require(db)
    with first.work() as again:
        assert again == held


def test_renewed_while_the_work_lasts_and_not_for_ever(leads, clock):
    first, second = leads
    began = clock.now
    with first.work():
        while clock.now + LEASE / 2 <= began + MAX_HOLD:
            clock.now += LEASE / 2
            first.renew()
            assert not has_it(second)
        clock.now += 2 * LEASE
        first.renew()
        assert has_it(second), "whoever hangs does not hold on for ever"
        first.renew()
        assert has_it(second), "what was lost is not taken again by a heartbeat"
        clock.now += LEASE / 2
        second.renew()
        clock.now += LEASE / 2
        assert has_it(first), "nothing is renewed between two rounds"


@pytest.mark.parametrize("days", [-1, 1])
def test_a_wrong_clock_holds_a_lease_for_no_longer_than_a_lease(leads, clock, days):
    first, second = leads
    assert has_it(first)
    clock.advance(days=days)
    assert has_it(second)
    clock.advance(seconds=1)
    assert has_it(second)


def test_two_at_the_same_moment_have_one_winner(leads):
    both = threading.Barrier(2)

    def take(lead):
        both.wait()
        return has_it(lead)

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(take, leads)) == [False, True]


def test_sweeps_are_done_by_one_of_all(store, leads):
    done = []
    loops = [
        alone("sweeps", lead, lambda _held, number=number: done.append(number), 1)
        for number, lead in enumerate(leads)
    ]
    for loop in (*loops, *loops):
        loop.round()
    assert done == [0, 0]
    loops[0].end(0.0)
    loops[1].round()
    assert done == [0, 0, 1]
    with store.read() as db:
        assert len(db.scalars(select(LeaseRow)).all()) == 1
