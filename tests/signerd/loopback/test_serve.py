"""The server's life inside the daemon's: it starts before it is spoken of, finishes what it began, and leaves
nothing.
"""

import asyncio
import signal
import threading

import pytest

from signerd.endpoint import socket_path
from signerd.errors import DaemonFailed
from signerd.loopback import serve
from signerd.loopback.serve import serving
from tests.signerd.loopback.test_routes import STATUS
from tests.support.served import Scripted, served_script


def test_an_answer_that_has_begun_is_finished_before_the_server_ends(state):
    begun, then_step = threading.Event(), threading.Event()

    async def slow():
        begun.set()
        await asyncio.to_thread(then_step.wait)
        return STATUS

    answers = []

    def ask(daemon) -> None:
        with daemon.client() as client:
            answers.append(client.status())

    with served_script(state, status=slow) as daemon:
        asking = threading.Thread(target=ask, args=(daemon,))
        asking.start()
        assert begun.wait(10)
        threading.Timer(0.05, then_step.set).start()
    asking.join(10)
    assert answers == [STATUS]
    assert not socket_path(state).exists()


def test_an_answer_that_waits_for_a_person_does_not_hold_up_the_end(state, monkeypatch, caplog):
    monkeypatch.setattr(serve, "GRACE_SECONDS", 0)
    caplog.set_level("CRITICAL", logger="uvicorn.error")
    begun = threading.Event()
    cancelled: list[bool] = []
    outcome = []

    async def person():
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    def ask(daemon) -> None:
        with daemon.client() as client:
            try:
                client.status()
            except DaemonFailed as error:
                outcome.append(error)

    with served_script(state, status=person) as daemon:
        asking = threading.Thread(target=ask, args=(daemon,))
        asking.start()
        assert begun.wait(10)
    asking.join(10)
    assert cancelled == [True]
    assert len(outcome) == 1


@pytest.mark.anyio
async def test_signals_stay_the_daemons_and_an_error_of_the_body_is_kept(state):
    before = signal.getsignal(signal.SIGTERM)

    async def body() -> None:
        async with serving(Scripted(), state) as path:
            assert path.is_socket()
            assert signal.getsignal(signal.SIGTERM) is before
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await body()
    assert not socket_path(state).exists()


def test_l11_a_stream_is_not_taken_for_a_connection_without_a_request(state, monkeypatch):
    monkeypatch.setattr(serve, "REQUEST_SECONDS", 0.05)
    with served_script(state) as daemon, daemon.client() as client, client.follow() as lines:
        daemon.on_loop(asyncio.sleep, 0.1)
        daemon.feed("p-1", "progress", "still told")
        assert next(line.text for line in lines if line is not None) == "still told"
