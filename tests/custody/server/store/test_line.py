"""Who works out a change waits until another has, but not for ever."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from custody.server.store.line import Line
from tests.support.custody import ok, open_desk

LONG = 60.0


def entered_by_another(line: Line, pool: ThreadPoolExecutor) -> threading.Event:
    entered = threading.Event()

    def enter() -> None:
        with line.stand():
            entered.set()

    pool.submit(enter)
    return entered


@pytest.mark.parametrize("abreast", [1, 2])
def test_so_many_go_at_once_and_the_next_when_one_has_gone(abreast: int) -> None:
    line = Line(abreast, patience_seconds=LONG)
    with ThreadPoolExecutor(1) as pool:
        places = [line.stand() for _ in range(abreast)]
        for place in places:
            place.__enter__()
        entered = entered_by_another(line, pool)
        assert not entered.wait(0.05)
        places[0].__exit__(None, None, None)
        assert entered.wait(LONG)


def test_a_place_is_given_back_by_whoever_fails() -> None:
    line = Line(1, patience_seconds=LONG)
    with pytest.raises(ValueError, match="drafting"), line.stand():
        raise ValueError("drafting")
    with ThreadPoolExecutor(1) as pool:
        assert entered_by_another(line, pool).wait(LONG)


def test_who_went_ahead_gives_back_no_place_that_is_another_s() -> None:
    line = Line(1, patience_seconds=0)
    with line.stand() as first:
        with line.stand() as second:
            pass
        with line.stand() as third:
            pass
    with line.stand() as fourth:
        pass
    assert (first, second, third, fourth) == (True, False, False, True)


def test_whoever_stays_in_front_does_not_keep_others_from_proposing_and_signing(tmp_path, database) -> None:
    with open_desk(tmp_path / "state", database_url=database) as desk, ExitStack() as stack:
        desk.deposit(500_000)
        line = desk.world.platform.services.store.line
        while stack.enter_context(line.stand()):
            pass
        created = ok(desk.propose(10_000, fee_rate="1"))
        assert desk.approve("alice", created["psbt_id"])["status"] == "PENDING"
